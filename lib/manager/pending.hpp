// The calls that wait for the engine: for each, the handler for the outcome and what is needed to
// report it. The engine identifies a call by its cookie; a call that has ended is not found again.

#pragma once

#include "completion.hpp"
#include "core/base/pool.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace redlock::core {
struct acquire_call;
}

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Calls whose handlers take `(error_code, Result)`, for any of the `Results`, in one table.
template <typename... Results>
class pending {
public:
    struct call {
        core::handle<call> self;
        core::handle<core::acquire_call> wanted;     // of the engine, for a cancellation
        std::uint64_t observed = 0;                  // its number for the observer
        std::unique_ptr<const std::string> resource; // null: the key tells it
        diagnostics_sink sink;
        std::variant<std::monostate, completion<error_code, Results>...> done;

        std::uint64_t cookie() const noexcept {
            return std::uint64_t{self.index} << 32U | self.generation;
        }
        void reset() {
            wanted = {};
            observed = 0;
            resource.reset();
            sink = {};
            done.template emplace<std::monostate>();
        }
    };

    /// `wait` adds the handler.
    call& add() { return calls_.create(); }
    call& add(std::string&& resource) {
        call& made = calls_.create();
        made.resource = std::make_unique<const std::string>(std::move(resource));
        return made;
    }
    template <typename Result>
    static void wait(call& waiting, completion<error_code, Result>&& done) {
        waiting.done.template emplace<completion<error_code, Result>>(std::move(done));
    }

    /// Returns null for a call that has ended.
    call* find(std::uint64_t cookie) noexcept {
        return calls_.find(
            {static_cast<std::uint32_t>(cookie >> 32U), static_cast<std::uint32_t>(cookie)});
    }

    /// Ends a call that waits for a `Result`, and returns its handler.
    template <typename Result>
    completion<error_code, Result> end(call& ended) {
        auto done = std::get<completion<error_code, Result>>(std::move(ended.done));
        calls_.destroy(ended);
        return done;
    }

    std::size_t size() const noexcept { return calls_.size(); }

private:
    core::pool<call> calls_;
};

}}} // namespace redlock::REDLOCK_ABI::detail

#include <redlock/error.hpp>

#include <boost/system/errc.hpp>

#include <string>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

class errc_category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "redlock"; }

    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
        case errc::contended:
            return "contended: another owner holds the lock";
        case errc::no_quorum:
            return "no quorum: too few masters could vote; see the diagnostics";
        case errc::validity_exhausted:
            return "validity exhausted: the lease was used up before a majority granted it; use a "
                   "longer ttl";
        case errc::wait_timed_out:
            return "wait timed out: the wait ended in the middle of an attempt; wait longer than a "
                   "round trip";
        case errc::lost:
            return "the lock was lost: its lease ended or a majority has no key for it; stop the "
                   "work";
        case errc::released:
            return "the lock was released";
        case errc::closed:
            return "the lock manager was closed";
        case errc::not_running:
            return "the lock manager is not running: call async_run first";
        case errc::invalid_argument:
            return "invalid argument: the diagnostics (with_diagnostics) and config::log name the "
                   "value and the range";
        case errc::stale_token:
            return "stale fencing token: the resource has seen a later one; stop the "
                   "work";
        case errc::would_deadlock:
            return "would deadlock: a blocking call on the manager's own thread, or for a lock "
                   "that this object or thread already has";
        case errc::conflicting_change:
            return "conflicting change of the members: the diagnostics and the log name it; finish "
                   "it first";
        }
        return "unknown redlock error " + std::to_string(value);
    }

    boost::system::error_condition default_error_condition(int value) const noexcept override {
        if (static_cast<errc>(value) == errc::would_deadlock) {
            return boost::system::errc::make_error_condition(
                boost::system::errc::resource_deadlock_would_occur);
        }
        return {value, *this};
    }
};

class condition_category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "redlock.condition"; }

    std::string message(int value) const override {
        switch (static_cast<condition>(value)) {
        case condition::not_acquired:
            return "the lock was not acquired";
        case condition::unavailable:
            return "the lock service cannot be used";
        case condition::stopped:
            return "the lock manager does not run";
        case condition::lost:
            return "the lock was lost";
        }
        return "unknown redlock condition " + std::to_string(value);
    }

    bool equivalent(const error_code& code, int value) const noexcept override {
        if (code.category() != redlock::error_category()) {
            return false;
        }
        const errc error = static_cast<errc>(code.value());
        switch (static_cast<condition>(value)) {
        case condition::not_acquired:
            return error == errc::contended || error == errc::validity_exhausted
                   || error == errc::wait_timed_out;
        case condition::unavailable:
            return error == errc::no_quorum;
        case condition::stopped:
            return error == errc::closed || error == errc::not_running;
        case condition::lost:
            return error == errc::lost || error == errc::stale_token;
        }
        return false;
    }
};

} // namespace

const boost::system::error_category& error_category() noexcept {
    static const errc_category category;
    return category;
}

boost::system::error_condition make_error_condition(condition what) noexcept {
    static const condition_category category;
    return {static_cast<int>(what), category};
}

}} // namespace redlock::REDLOCK_ABI

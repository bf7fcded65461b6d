// Quoted by docs/packaging.md.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <string>

namespace snippets::compilers {

namespace asio = boost::asio;

struct job {
    std::string name;
};

asio::awaitable<void> work(job todo, asio::use_awaitable_t<> token);

asio::awaitable<void> both() {
    // wrong with g++ 12: the temporary is destroyed twice
    co_await work(job{.name = "a long name that lives on the heap"}, asio::use_awaitable);

    // right with every compiler
    job todo{.name = "a long name that lives on the heap"};
    co_await work(todo, asio::use_awaitable);
}

} // namespace snippets::compilers

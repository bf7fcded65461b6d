"""What a shared library lets out, compared with the list of it that is checked in.

    symbols.py LIBRARY LIST             compares
    symbols.py --update LIBRARY LIST    writes the list
    symbols.py --self-test              shows that the comparison fails when it should

Two things are asked:

- Nothing is let out but redlock's own names and the few of Boost that must be one in a process
  (lib/exports.map.in says which, and why).
- The functions and objects that programs link with are those of LIST. A line that is gone or
  changed breaks programs: they need a new soname. A line that is new does not.

The list has only what is defined once, in one file of the library: inline functions, templates and
what the compiler makes of them come and go with compilers and optimization. The names of standard
types are shortened, and of redlock's inline namespace nothing is left, so that the same list holds
for every compiler, for every Boost and for every Redis. It does not see a change of a class's
layout: scripts/abi does, before a release.
"""

import re
import subprocess
import sys

OWN = re.compile(r"^(?:(?:vtable|typeinfo|typeinfo name|guard variable|VTT) for |"
                 r"non-virtual thunk to |virtual thunk to )?redlock::v\d+_asio_\d+::")
SHARED = [
    re.compile(pattern)
    for pattern in (
        r"^(?:guard variable for )?boost::asio::detail::call_stack<.*>::top_$",
        r"^boost::asio::detail::keyword_tss_ptr<boost::asio::detail::call_stack<.*>::value_$",
        r"^(?:guard variable for )?boost::asio::(?:ssl::)?error::get_\w+_category\(\)",
        r"^typeinfo (?:name )?for boost::system::",
        r"^REDLOCK_\d+$",  # the name of the version itself
    )
]
# In the library's own files only, although exported: the testing kit and the tool are made of it, or
# of nothing that a program can name.
INTERNAL = re.compile(
    r"^redlock::(?:detail::(?:check|check_extension|check_pool"
    r"|check_resource|check_secret|checked_request|connection|connection_error|engine_driver|exclusive_only|held_leases"
    r"|keys_of|manager_impl|member_name|message_of|name_of_slots|page_of|quorum_downtime|release_watch|same_server"
    r"|settings_of|throw_exception_from_error|times_of|to_string|unused_tls|votes_needed|warnings)"
    r"|testing::(?:memory|process|virtual_backend|virtual_world))\b"
)
SHORT = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"\bv\d+_asio_\d+::", ""),
        (r"\[abi:\w+\]", ""),
        (r" >", ">"),
        (r"\bstd::(?:__cxx11::)?basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"),
        (r"\bstd::basic_string_view<char, std::char_traits<char>>", "std::string_view"),
        (r", 18446744073709551615ul>", ">"),
        (r"\bstd::chrono::duration<long, std::ratio<1l, 1000l>>", "milliseconds"),
        (r"\bstd::chrono::duration<long, std::ratio<1l, 1000000l>>", "microseconds"),
        (r"\bstd::chrono::duration<long, std::ratio<1l, 1000000000l>>", "nanoseconds"),
        (r"\bstd::chrono::time_point<redlock::clock, nanoseconds>", "redlock::time_point"),
    )
]


def exported(library):
    """Pairs of the kind and the full demangled name."""
    lines = subprocess.run(
        ["nm", "--dynamic", "--demangle", "--defined-only", library],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    for line in lines:
        kind, name = re.fullmatch(r"[0-9a-f]+ (\S) (.*)", line).groups()
        yield kind, re.sub(r"@@?\w+$", "", name)


def foreign(symbols):
    """What has no business here."""
    for _, name in symbols:
        if not OWN.match(name) and not any(pattern.search(name) for pattern in SHARED):
            yield name


def shortened(name):
    for pattern, short in SHORT:
        name = pattern.sub(short, name)
    return name


def lasting(symbols):
    """What programs link with, of every compiler alike."""
    names = set()
    for kind, name in symbols:
        if kind in "TDBR" and OWN.match(name) and "thunk to " not in name:
            short = shortened(name)
            if not INTERNAL.match(re.sub(r"^(?:vtable|typeinfo|typeinfo name) for ", "", short)):
                names.add(short)
    return sorted(names)


def compare(symbols, wanted):
    """The faults, each as a line to print."""
    faults = [f"let out, but not ours: {name}" for name in sorted(set(foreign(symbols)))]
    if any("std::__1::" in name for _, name in symbols):
        return faults  # libc++ has other names for the same types
    found = lasting(symbols)
    faults += [f"gone: {name}" for name in wanted if name not in found]
    faults += [f"new: {name}" for name in found if name not in wanted]
    return faults


def self_test():
    v = "redlock::v0_asio_102600::"
    good = [
        ("T", f"{v}lock::held() const"),
        ("W", f"{v}inline_function()"),
        ("T", f"{v}detail::manager_impl::run()"),
        ("u", "boost::asio::error::get_misc_category()::instance"),
    ]
    wanted = ["redlock::lock::held() const"]
    assert compare(good, wanted) == []
    assert compare(good[1:], wanted) == ["gone: redlock::lock::held() const"]
    assert compare(good + [("T", f"{v}f()")], wanted) == ["new: redlock::f()"]
    for name in ("redisReaderCreate", "fmt::v9::vformat()", "boost::urls::f()", "redlock::core::f()"):
        assert compare(good + [("W", name)], wanted) == [f"let out, but not ours: {name}"]


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    update = arguments[:1] == ["--update"]
    library, list_file = arguments[1:] if update else arguments
    symbols = list(exported(library))
    if update:
        with open(list_file, "w", encoding="utf-8") as out:
            out.writelines(f"{name}\n" for name in lasting(symbols))
        return 0
    with open(list_file, encoding="utf-8") as lines:
        faults = compare(symbols, lines.read().splitlines())
    for fault in faults[:40]:
        print(fault[:300])
    if faults:
        print(f"{library}: {len(faults)} differences from {list_file}.")
        print("If they are meant: scripts/abi --update, and read in CONTRIBUTING.md what they ask for.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

// Includes what programs that take locks need: locks on a majority of N independent Redis masters,
// asynchronous and blocking. Include by themselves: admin.hpp, placement.hpp, prometheus.hpp,
// opentelemetry.hpp, and testing.hpp of redlock-testing, a library of its own for tests.

#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "redlock needs C++20: compile with -std=c++20, or cpp_std=c++20 in your Meson project"
#endif

#include <redlock/blocking.hpp>
#include <redlock/blocking_shared.hpp>
#include <redlock/clock.hpp>
#include <redlock/config.hpp>
#include <redlock/diagnostics.hpp>
#include <redlock/election.hpp>
#include <redlock/error.hpp>
#include <redlock/fenced.hpp>
#include <redlock/lock.hpp>
#include <redlock/lock_manager.hpp>
#include <redlock/logger.hpp>
#include <redlock/metrics.hpp>
#include <redlock/names.hpp>
#include <redlock/observer.hpp>
#include <redlock/options.hpp>
#include <redlock/outcome.hpp>
#include <redlock/protocol.hpp>
#include <redlock/version.hpp>
#include <redlock/with_diagnostics.hpp>
#include <redlock/with_lock.hpp>

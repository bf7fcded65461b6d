// The options that several commands have, and what a value may be.

#pragma once

#include "settings.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

/// The group of options that no help shows.
inline const std::string hidden;

/// \name What a value may be, said as the library says it
/// \{
CLI::Validator one_of(std::vector<std::string> words);
CLI::Validator whole_number(std::size_t low, std::size_t high);
CLI::Validator number_between(double low, double high);
/// \}

/// Slots of a pool: fewer than the library allows, as one attempt asks for all of them within the
/// usual `master_timeout`.
inline constexpr std::size_t slots_max = 4'096;

/// Adds an option whose value is a duration.
CLI::Option*
add_duration(CLI::App& app, const std::string& name, milliseconds& into, const std::string& what);

/// --ttl. The default is `redlock::default_ttl`.
void add_ttl(CLI::App& app, milliseconds& into, const std::string& what);

/// RESOURCE alone.
void add_resource(CLI::App& app, std::string& into);

/// RESOURCE, --ttl, --wait and the like.
void add_wishes(CLI::App& app, lock_wishes& into, const std::string& usual_wait);

/// The masters, times and credentials, which all commands have.
void add_common(CLI::App& app, settings& into);

} // namespace cli

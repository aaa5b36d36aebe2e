// Options that several subcommands have.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace dtrain {

/// How results are given: as text, as one JSON document, or (quiet without json) not at all.
struct OutputOptions {
  bool json = false;
  bool quiet = false;
  bool text() const { return !json && !quiet; }
};

void add_output_options(CLI::App& command, OutputOptions& options);
/// For numbers of int64_t, this one or larger.
CLI::Validator whole_number(int64_t least);
/// --best: of a run directory the best checkpoint so far, not the newest.
void add_best_option(CLI::App& command, bool& best);
/// --set KEY=VALUE, as often as wanted.
void add_set_option(CLI::App& command, std::vector<std::string>& sets);

}  // namespace dtrain

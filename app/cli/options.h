// Options shared by several subcommands.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace dtrain {

/// The format in which a command prints its results: text (the default), or one JSON document if `json` is
/// set. With `quiet`, no text is printed.
struct OutputOptions {
  bool json = false;
  bool quiet = false;
  bool text() const { return !json && !quiet; }
};

void add_output_options(Command& command, OutputOptions& options);
/// Adds --best, which selects the best checkpoint of a run directory.
void add_best_option(Command& command, bool& best);
/// Adds --set KEY=VALUE, which may be given several times, and may have several values.
void add_set_option(Command& command, std::vector<std::string>& sets);

}  // namespace dtrain

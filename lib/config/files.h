// The configuration files themselves: reading one, and putting the files that it names in their place.
#pragma once

#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// The tree in this file, environment replaced; null, and the mistake reported (at `named_at` where it cannot
/// be read), if it is none.
ConfigNode read_config_file(const std::string& path, const Mark& named_at, Diagnostics& diagnostics);

/// Whether a top-level key's value may be the path of a file that holds it: model, dataset, strategy.
bool may_be_file(std::string_view key);

/// A file that is named in a configuration file, as seen from the folder of that file; from the working
/// directory where no file names it (a --set).
std::string beside(std::string_view name, const Mark& named_at);

/// The tree of the file that `value` names, relative to the file that names it; `value` itself where that is
/// no path (a string with a slash, or that ends in .yaml or .yml).
ConfigNode include_file(const ConfigNode& value, Diagnostics& diagnostics);

/// A file that a configuration names: as it is if absolute, else beside the file that names it, then under
/// $DTRAIN_DATA. Returns the first that exists, or the first tried.
std::string find_file(std::string_view name, const Mark& named_at);

}  // namespace dtrain

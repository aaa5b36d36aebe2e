// Names that stand for several files, as shells have them.
#pragma once

#include <string>
#include <vector>

#include "data/readers/reader.h"

namespace dtrain {

/// The names that {a,b} and {000..009} stand for; where either end has leading zeros, all numbers are as wide
/// as the wider end. Throws UserError for more than 100,000.
std::vector<std::string> expand_braces(const std::string& name);

/// The names in a folder that match a pattern with *, ? and [...], with the folder before them, sorted. The
/// folder is as it is; "": the working directory, which is not put before them.
std::vector<std::string> matching_files(const std::string& folder, const std::string& pattern);

/// The paths of the files that a name stands for: with braces, each of which has to be there, and with *, ?
/// and [...], of which the paths are sorted. Throws UserError where nothing is there.
std::vector<std::string> find_files(const std::string& name, const ReadRequest& request);

}  // namespace dtrain

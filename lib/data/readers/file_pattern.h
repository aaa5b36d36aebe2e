// Shell patterns: names that match several files.
#pragma once

#include <string>
#include <vector>

#include "data/readers/reader.h"

namespace dtrain {

/// Expands {a,b} and {000..009} in a name. If either end of a range has leading zeros, all numbers are padded
/// to the wider end. Throws UserError for more than 100,000 names.
std::vector<std::string> expand_braces(const std::string& name);

/// Returns the files in a folder that match a pattern with *, ? and [...], sorted and with the folder before
/// them. The folder is not a pattern. "" is the working directory, which is not put before the files.
std::vector<std::string> matching_files(const std::string& folder, const std::string& pattern);

/// Returns the paths of the files that a name or a pattern selects. Files named by braces must all exist;
/// files that match *, ? and [...] are sorted. Files may be empty. Throws UserError if no file is found.
std::vector<std::string> find_files(const std::string& name, const ReadRequest& request);

}  // namespace dtrain

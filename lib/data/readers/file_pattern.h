// Shell patterns: names that match several files.
#pragma once

#include <string>
#include <vector>

#include "data/readers/reader.h"

namespace dtrain {

/// Expands {a,b} and {000..009} in a name. If the first or the last number of a range has leading zeros, all
/// numbers are padded with zeros to the length of the longer one. Throws UserError for more than 100,000
/// names.
std::vector<std::string> expand_braces(const std::string& name);

/// Returns the sorted paths of the files in a folder whose names match a pattern with *, ? and [...]. The
/// paths begin with `folder`, in which *, ? and [ have no special meaning. If `folder` is "", the working
/// directory is searched, and the paths have no folder.
std::vector<std::string> matching_files(const std::string& folder, const std::string& pattern);

/// Returns the paths of the files that a name or a pattern selects. All files to which braces expand must
/// exist. The files that match *, ? or [...] are sorted. The files may be empty. Throws UserError if no file
/// is found.
std::vector<std::string> find_files(const std::string& name, const ReadRequest& request);

}  // namespace dtrain

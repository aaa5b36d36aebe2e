// Identifies the samples of a split. The identity does not depend on the folder of the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/files/folder_listing.h"

namespace dtrain {

/// Identity of the samples of a split. With it, a resumed run can detect that the data have changed.
struct DataIdentity {
  struct File {
    std::string name;  // name of the file without its folder
    int64_t bytes = 0;
    std::string digest;  // digest of the content, or of parts of it if the file is large
  };
  std::string reader;  // the reader's options as YAML, without file names
  std::vector<File> files;
  int64_t samples = 0;       // number of samples in the files
  int64_t from = 0, to = 0;  // the split has the rows [from, to) of the files
  std::string drawn = {};    // how the split was drawn from these rows; "" if it was not drawn

  Json to_json() const;
  /// Throws UserError if a part of the JSON value is missing or malformed.
  static DataIdentity from_json(const Json& json);
};

/// Identifies the files at these paths. Reads at most a few megabytes of each file. Throws the same
/// errors as InputFile.
std::vector<DataIdentity::File> identify_files(const std::vector<std::string>& paths);

/// Identifies a group of files, such as the images in a folder, as if they were one file. The identity
/// consists of the names and sizes of all files, and of the first bytes of some of them.
DataIdentity::File identify_listing(std::string name, const FileListing& listing);

/// Returns a description of the differences. Returns "" if there are none. The name of a file does not count
/// as a difference.
std::string describe_change(const DataIdentity& before, const DataIdentity& now);

}  // namespace dtrain

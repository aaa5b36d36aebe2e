// Identifies the samples of a split, independently of where the files are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/files/folder_listing.h"

namespace dtrain {

/// Identity of a split's samples; lets a run detect that it continues with different data.
struct DataIdentity {
  struct File {
    std::string name;  // name of the file without its folder
    int64_t bytes = 0;
    std::string digest;  // digest of the content, or of parts of it if the file is large
  };
  std::string reader;  // the reader's options as YAML, without file names
  std::vector<File> files;
  int64_t samples = 0;       // number of samples in the files
  int64_t from = 0, to = 0;  // the split has the samples [from, to)
  std::string drawn = {};    // how the split was drawn from [from, to); "" if it was not

  Json to_json() const;
  /// Throws UserError if a part is missing or malformed.
  static DataIdentity from_json(const Json& json);
};

/// Identifies the files at these paths, reading at most a few megabytes of each. Throws the errors of
/// InputFile.
std::vector<DataIdentity::File> identify_files(const std::vector<std::string>& paths);

/// Identifies a group of files as one: by their names, their sizes and the first bytes of some of them.
DataIdentity::File identify_listing(std::string name, const FileListing& listing);

/// Returns a description of the changes; "" if there are none. A file that was only renamed is not a change.
std::string describe_change(const DataIdentity& before, const DataIdentity& now);

}  // namespace dtrain

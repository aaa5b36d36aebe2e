// Says what the samples of a split are, wherever their files stand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/files/folder_listing.h"

namespace dtrain {

/// Identifies the samples of a split, so that a run notices when it goes on with other samples than before.
struct DataIdentity {
  struct File {
    std::string name;  // without its folder
    int64_t bytes = 0;
    std::string digest;  // of the file's content, or of samples of it where the file is large
  };
  std::string reader;  // the reader's options as YAML, without the names of files
  std::vector<File> files;
  int64_t samples = 0;       // in the files
  int64_t from = 0, to = 0;  // the split has the samples [from, to) of these
  std::string drawn = {};    // or some of them: how they were drawn

  Json to_json() const;
  /// Throws UserError where a part is missing or is not what it must be.
  static DataIdentity from_json(const Json& json);
};

/// Looks at the files at these paths, and reads at most a few megabytes of each. Throws what InputFile
/// throws.
std::vector<DataIdentity::File> identify_files(const std::vector<std::string>& paths);

/// The same for files that are one together: their names and sizes, and the beginnings of some.
DataIdentity::File identify_listing(std::string name, const FileListing& listing);

/// Says in words what is different now; "" where nothing is. A file that only has another name is no
/// difference.
std::string describe_change(const DataIdentity& before, const DataIdentity& now);

}  // namespace dtrain

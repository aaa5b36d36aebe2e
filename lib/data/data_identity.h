// What the samples of a split are, wherever their files stand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// The columns of a file with a header that make the model's inputs, in order, and its targets; empty for
/// other files.
struct FieldNames {
  std::vector<std::string> inputs, targets;

  bool empty() const { return inputs.empty() && targets.empty(); }
  bool operator==(const FieldNames&) const = default;
  Json to_json() const;
  /// Throws UserError.
  static FieldNames from_json(const Json& json);
};

/// By this a run notices that it goes on with other samples than those it was trained on so far.
struct DataIdentity {
  struct File {
    std::string name;  // without its folder
    int64_t bytes = 0;
    std::string digest;  // of its content: all of it, or samples where it is large
  };
  std::string reader;  // its options as YAML, names of files left out
  std::vector<File> files;
  int64_t samples = 0;       // in the files
  int64_t from = 0, to = 0;  // those that the split has
  FieldNames fields;

  Json to_json() const;
  /// Throws UserError where a part is missing or is not what it must be.
  static DataIdentity from_json(const Json& json);
};

/// Of the files at these paths. Reads at most a few megabytes of each. Throws as InputFile does.
std::vector<DataIdentity::File> identify_files(const std::vector<std::string>& paths);

/// What is different now, in words; "" where nothing is (a file's name alone says nothing).
std::string describe_change(const DataIdentity& before, const DataIdentity& now);

}  // namespace dtrain

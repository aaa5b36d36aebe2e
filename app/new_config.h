// What `dtrain new` writes: one text for a table, one for pictures.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

/// The paths are as they were given.
struct NewOptions {
  std::string data;    // a CSV file or a folder
  std::string target;  // the column to predict; "" where the guess is good
  std::string file;    // that is to be written
  std::string schema;  // the JSON schema's file, beside it
  std::string folder;  // that `file` will stand in, absolute: what it names is named from there
};

/// As YAML has it, also within brackets: plain where nothing can be meant by it, else in quotes as JSON has.
std::string yaml_string(const std::string& text);
std::string yaml_list(const std::vector<std::string>& texts);
/// The first lines; `described` is what was found in the data, each line a comment.
std::string config_head(const NewOptions& options, const std::string& described);
/// `path` as the file will name it.
std::string path_from_config(const NewOptions& options, const std::string& path);

/// Both look at the data, and throw UserError where those are not what a network can be trained on.
std::string table_config(const NewOptions& options);
std::string picture_config(const NewOptions& options);

}  // namespace dtrain

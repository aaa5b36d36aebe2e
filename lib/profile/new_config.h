// What `dtrain new` writes: one text for a table, one for pictures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace dtrain {

struct TableProfile;   // table_profile.h
struct NamedPictures;  // picture_look.h

/// The paths are as they were given.
struct NewOptions {
  std::string data;    // a CSV file or a folder
  std::string target;  // the column to predict; "" where the guess is good
  std::string file;    // the configuration that is to be written
  std::string
      schema;  // the JSON schema's file, beside it; "" where the configuration goes to standard output
  std::string folder;  // where the configuration will stand, absolute: its paths are relative to it
};

/// A configuration, and what its user is told. The text repeats all of it in comments.
struct NewConfig {
  std::string text;
  std::vector<std::string> notes;
  std::string table;                  // of a table's columns, in lines; "" for pictures
  Json columns = Json::array();       // the same for --json
  std::vector<std::string> warnings;  // faults of the data
};

/// A text as one line of UTF-8 without control characters, whatever stands in it.
std::string one_line(std::string_view text);
/// A string as the configuration has to say it, also within brackets: in quotes where something else could be
/// meant by it, and with `$$` for a dollar that would begin a variable.
std::string yaml_string(const std::string& text);
/// The first lines, all of them comments: how the configuration was made, its notes, table and warnings.
std::string config_head(const NewOptions& options, const NewConfig& config);
/// "cat (3), dog (12)", by class names and how many samples each has; of many classes the first ones.
std::string describe_classes(const std::vector<std::string>& names, const std::vector<int64_t>& counts);
/// `path` as the configuration will name it.
std::string path_from_config(const NewOptions& options, const std::string& path);

/// Both look at the data, and throw UserError where those are not what a network can be trained on.
NewConfig table_config(const NewOptions& options);
NewConfig picture_config(const NewOptions& options);
/// The configuration for a table that names pictures; throws as the two above.
NewConfig picture_table_config(const NewOptions& options, const TableProfile& table,
                               const NamedPictures& pictures);

}  // namespace dtrain

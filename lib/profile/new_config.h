// Generates the configuration files of `dtrain new`: templates for tables, images and text (new_text.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace dtrain {

struct TableProfile;    // table_profile.h
struct NamedPictures;   // picture_look.h
struct InspectedPairs;  // picture_pairs.h

/// Options of `dtrain new`. The paths `data` and `file` may be relative to the working directory.
struct NewOptions {
  std::string data;    // a CSV file, a text file or a folder
  std::string target;  // the column to predict; "" to guess it
  std::string as;      // "text" or "table"; "" to guess the content of a file
  std::string file;    // path of the configuration file to write
  // Path of the JSON schema file next to the configuration; "" if it is written to standard output.
  std::string schema;
  // Absolute path of the configuration's folder; paths in the configuration are relative to it.
  std::string folder;
};

/// A configuration and the messages about it. The text of the configuration also contains these messages as
/// comments.
struct NewConfig {
  std::string text;
  std::vector<std::string> notes;
  std::string table;                  // the table of columns, which has several lines; "" for images
  Json columns = Json::array();       // the table of columns in the output of --json
  std::vector<std::string> warnings;  // messages about problems in the data
};

/// Converts any text to a single line of valid UTF-8 without control characters.
std::string one_line(std::string_view text);
/// Returns a string as it must be written in a configuration, even inside brackets. The string is quoted if
/// YAML could read it as something else. A dollar sign that would begin a variable is written as `$$`.
std::string yaml_string(const std::string& text);
/// Returns the comments at the beginning of the configuration: how it was made, notes, the table of columns,
/// and warnings.
std::string config_head(const NewOptions& options, const NewConfig& config);
/// Returns the class names with their sample counts, e.g. "cat (3), dog (12)". If there are many classes,
/// shows only the first ones.
std::string describe_classes(const std::vector<std::string>& names, const std::vector<int64_t>& counts);
/// Returns `path` relative to the configuration's folder.
std::string path_from_config(const NewOptions& options, const std::string& path);

/// The following two functions analyze the data and return a configuration. They throw UserError if no
/// network can be trained on the data.
NewConfig table_config(const NewOptions& options);
NewConfig picture_config(const NewOptions& options);
/// Returns the configuration for two parallel folders of images. The network computes a mask or an image from
/// an image.
NewConfig pairs_config(const NewOptions& options, const InspectedPairs& pairs);
/// Returns the configuration for a table of image paths. Throws UserError if no network can be trained on the
/// data.
NewConfig picture_table_config(const NewOptions& options, const TableProfile& table,
                               const NamedPictures& pictures);

}  // namespace dtrain

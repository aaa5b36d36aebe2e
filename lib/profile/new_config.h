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

/// Options of `dtrain new`. Paths are as given by the user.
struct NewOptions {
  std::string data;    // a CSV file, a text file or a folder
  std::string target;  // the column to predict; "" to guess it
  std::string file;    // the configuration to write
  std::string schema;  // the JSON schema file next to it; "" if the configuration goes to standard output
  std::string folder;  // the configuration's folder, absolute; its paths are relative to it
};

/// A configuration and the messages about it, which the text repeats in comments.
struct NewConfig {
  std::string text;
  std::vector<std::string> notes;
  std::string table;                  // table of columns, several lines; "" for images
  Json columns = Json::array();       // the table of columns for --json
  std::vector<std::string> warnings;  // problems in the data
};

/// Returns any text as one line of UTF-8 without control characters.
std::string one_line(std::string_view text);
/// Returns a string as written in the configuration, also inside brackets: quoted if it could be read as
/// something else, and with `$$` for a dollar that would start a variable.
std::string yaml_string(const std::string& text);
/// Returns the first lines of the configuration, which are comments: how it was made, notes, table and
/// warnings.
std::string config_head(const NewOptions& options, const NewConfig& config);
/// Returns "cat (3), dog (12)": class names with their numbers of samples. Shows only the first of many
/// classes.
std::string describe_classes(const std::vector<std::string>& names, const std::vector<int64_t>& counts);
/// Returns `path` relative to the configuration's folder.
std::string path_from_config(const NewOptions& options, const std::string& path);

/// The following two functions analyze the data, and throw UserError if a network cannot be trained on them.
NewConfig table_config(const NewOptions& options);
NewConfig picture_config(const NewOptions& options);
/// Returns the configuration for two parallel folders of images: a network that computes a mask or an image
/// from an image.
NewConfig pairs_config(const NewOptions& options, const InspectedPairs& pairs);
/// Returns the configuration for a table of image paths. Throws UserError if a network cannot be trained on
/// the data.
NewConfig picture_table_config(const NewOptions& options, const TableProfile& table,
                               const NamedPictures& pictures);

}  // namespace dtrain

// Shared code of the configuration tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "config/diagnostics.h"
#include "config/load/load.h"

namespace dtrain {

/// Returns all messages as shown to users, or "" if there are none.
inline std::string messages(const Diagnostics& diagnostics) {
  try {
    diagnostics.throw_if_errors();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

/// Parses a valid text as the file "f".
inline ConfigNode yaml(std::string_view text) {
  Diagnostics diagnostics;
  ConfigNode node = parse_yaml(text, "f", diagnostics);
  REQUIRE(messages(diagnostics) == "");
  return node;
}

/// Returns the messages of parse_yaml for a text.
inline std::string yaml_messages(std::string_view text) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(text, "f", diagnostics);
  if (diagnostics.has_errors()) CHECK(node.is_null());
  return messages(diagnostics);
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Compares values, ignoring marks and quotes (a quoted scalar that is a string either way equals a plain
/// one).
inline bool equal(const ConfigNode& a, const ConfigNode& b) {
  if (a.type() != b.type()) return false;
  if (a.is_scalar()) return a.text() == b.text();
  if (a.is_sequence()) {
    if (a.items().size() != b.items().size()) return false;
    for (size_t i = 0; i < a.items().size(); ++i)
      if (!equal(a.items()[i], b.items()[i])) return false;
  } else if (a.is_mapping()) {
    if (a.entries().size() != b.entries().size()) return false;
    for (size_t i = 0; i < a.entries().size(); ++i)
      if (!equal(a.entries()[i].first, b.entries()[i].first) ||
          !equal(a.entries()[i].second, b.entries()[i].second))
        return false;
  }
  return true;
}

/// A temporary folder of files.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dtrain-config-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, std::string_view text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace dtrain

// What a folder of pictures seems to hold, for `dtrain new`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

struct LookedAtPictures {
  std::string train;                 // the folder whose folders are the classes
  std::string validation, test;      // where there are such folders beside it; else ""
  std::vector<std::string> classes;  // sorted
  std::vector<int64_t> counts;       // pictures of each, in `train`
  int64_t height = 0, width = 0;     // in the middle of those that were looked at
  bool grey = false;                 // all of them
};

/// Throws UserError where the folder has no folders with pictures (JPEG, PNG, BMP, by the files' names).
LookedAtPictures look_at_pictures(const std::string& folder);

}  // namespace dtrain

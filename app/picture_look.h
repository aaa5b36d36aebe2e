// What a folder of pictures seems to hold, for `dtrain new`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

struct LookedAtPictures {
  std::string train;                 // the folder whose folders are the classes
  std::string validation, test;      // folders of class folders beside it; "" where there are none
  std::vector<std::string> classes;  // sorted
  std::vector<int64_t> counts;       // pictures of each, in `train`
  int64_t height = 0, width = 0;     // in the middle of those that were looked at
  bool grey = false;                 // all of them
};

/// Lists the files, and reads the headers of some. Throws UserError where the folder has no folders with
/// pictures (JPEG, PNG, BMP), or a single one.
LookedAtPictures look_at_pictures(const std::string& folder);

}  // namespace dtrain

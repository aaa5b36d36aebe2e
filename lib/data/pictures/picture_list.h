// Folders of pictures: which ones, in which order, and of which classes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/folder_listing.h"

namespace dtrain {

struct PictureClasses {
  FileListing files;
  std::vector<int32_t> classes;          // of each file
  std::vector<std::string> class_names;  // by number
};

/// The names that the folders of a data set's splits usually have.
inline constexpr std::array<std::string_view, 2> kTrainFolders{"train", "training"};
inline constexpr std::array<std::string_view, 2> kTestFolders{"test", "testing"};
inline constexpr std::array<std::string_view, 3> kValidationFolders{"validation", "val", "valid"};

/// What to tell whoever takes these folders of a folder for classes, where one is called like a training
/// split and another one like a split beside it, whatever their capitals; "" elsewhere.
std::string warning_of_splits(const std::string& folder, const std::vector<std::string>& names);

/// Whether a path ends as those of pictures do: .jpg, .jpeg, .png, .bmp.
bool has_ending_of_picture(const std::string& path);

/// The names of the folders in a folder, sorted; hidden ones are none. Of what is no folder: none.
std::vector<std::string> folders_in(const std::string& folder);

/// Every file below the folder. Files beside folders are passed over, unless they are pictures by their
/// names.
FileListing list_pictures(const std::string& folder);

/// Every file in the folders of a folder, each of which is a class. `class_names` are the folders in the
/// order in which they are numbered; where it is empty, it is the order of their names. Files beside the
/// folders are passed over, unless they are pictures by their names, which is an error. Throws UserError for
/// a folder that is none of the names, and for one without files.
PictureClasses list_classes(const std::string& folder, const std::vector<std::string>& class_names);

}  // namespace dtrain

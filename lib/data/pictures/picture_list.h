// Lists the images in a folder, in a defined order and with their classes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/column.h"
#include "data/files/folder_listing.h"

namespace dtrain {

struct PictureClasses {
  FileListing files;
  std::vector<int32_t> classes;          // class index of each file
  std::vector<std::string> class_names;  // indexed by class index
};

/// Usual names of the folders of a data set's splits.
inline constexpr std::array<std::string_view, 2> kTrainFolders{"train", "training"};
inline constexpr std::array<std::string_view, 2> kTestFolders{"test", "testing"};
inline constexpr std::array<std::string_view, 3> kValidationFolders{"validation", "val", "valid"};

/// Returns a warning if the subfolders `names` of `folder`, which are taken for classes, include one named
/// like a training split and one named like a validation or test split (ignoring case). Otherwise returns "".
std::string warning_of_splits(const std::string& folder, const std::vector<std::string>& names);

/// Returns true if a path has the extension of an image: .jpg, .jpeg, .png or .bmp.
bool has_ending_of_picture(const std::string& path);

/// Returns the names of a folder's subfolders, sorted, without hidden ones. Empty if `folder` is not a
/// folder.
std::vector<std::string> folders_in(const std::string& folder);

/// Lists every file below the folder. If it has subfolders, skips files without an image extension that are
/// next to the subfolders.
FileListing list_pictures(const std::string& folder);

/// Lists every file in the subfolders of a folder; each subfolder is a class. `class_names` gives the
/// subfolders in the order of the class indices; if empty, they are sorted by name. Files next to the
/// subfolders are skipped, but a file with an image extension there is an error. Throws UserError for a
/// subfolder that is not in `class_names`, and for one without files. `what` names the files in messages.
PictureClasses list_classes(const std::string& folder, const std::vector<std::string>& class_names,
                            const std::string& what = "images");

/// Returns an int32 column of scalars with the class index of each file.
std::shared_ptr<const Column> class_column(const PictureClasses& list);

}  // namespace dtrain

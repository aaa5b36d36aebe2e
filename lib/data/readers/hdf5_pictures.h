// Encoded pictures in a dataset of an HDF5 file.
#pragma once

#include <memory>
#include <string>

#include "data/pictures/picture_source.h"
#include "data/readers/binding.h"

namespace dtrain {

/// How a user says which datasets have the pictures and their targets.
struct PictureHdf5 : ArrayNames {
  std::string file;
  static const Schema<PictureHdf5>& schema();
};

/// The pictures of the dataset `name`: of bytes of variable length, a picture each; of [pictures, bytes] or
/// of opaque elements, where what is behind a picture does not matter. Throws UserError for a dataset of
/// another type.
std::shared_ptr<const PictureSource> hdf5_pictures(const std::string& path, const std::string& name);

}  // namespace dtrain

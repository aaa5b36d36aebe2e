// Encoded images in a dataset of an HDF5 file.
#pragma once

#include <memory>
#include <string>

#include "data/pictures/picture_source.h"
#include "data/readers/binding.h"

namespace dtrain {

/// Options that name the datasets of the images and their targets.
struct PictureHdf5 : ArrayNames {
  std::string file;
  static const Schema<PictureHdf5>& schema();
};

/// Returns the images of the dataset `name`. An image is an element with bytes of variable length, a row of a
/// dataset with the shape [images, bytes], or an opaque element. In rows and opaque elements, bytes after the
/// end of the image are ignored. Throws UserError for a dataset of another type.
std::shared_ptr<const PictureSource> hdf5_pictures(const std::string& path, const std::string& name);

}  // namespace dtrain

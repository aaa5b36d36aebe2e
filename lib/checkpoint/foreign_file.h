// Recognizes model files of other programs and explains how to use their weights.
#pragma once

#include <string>

namespace dtrain {

/// Describes a file that is not a dtrain checkpoint by its content, with a workaround if there is one: "a
/// model that Keras saved as .keras; `dtrain import FILE` converts ...". Returns "something else" for
/// unrecognized files. Opens HDF5 files, so the caller must not hold an Hdf5Session.
std::string describe_file(const std::string& path);

/// Returns whether a regular file starts like HDF5; false for dtrain checkpoints, which start with their own
/// header.
bool begins_as_hdf5(const std::string& path);

/// Returns whether a file is an archive written by Keras (.keras).
bool is_keras_archive(const std::string& path);

/// Returns whether a file is recognized as a model of another program.
bool is_foreign_model(const std::string& path);

}  // namespace dtrain

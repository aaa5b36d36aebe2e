// Recognizes model files of other programs and explains how to use their weights.
#pragma once

#include <string>

namespace dtrain {

/// Describes the content of a file that is not a dtrain checkpoint and, if possible, how to use it: "a model
/// that Keras saved as .keras; use `dtrain import FILE` to convert it ...". Returns "something else" if the
/// content is not recognized. The function opens HDF5 files, so the caller must not hold an Hdf5Session.
std::string describe_file(const std::string& path);

/// Returns true if a regular file begins with the signature of HDF5. Returns false for dtrain checkpoints,
/// because they begin with dtrain's header.
bool begins_as_hdf5(const std::string& path);

/// Returns true if a file is an archive that Keras wrote (.keras).
bool is_keras_archive(const std::string& path);

/// Returns true if a file looks like a model file of another program.
bool is_foreign_model(const std::string& path);

}  // namespace dtrain

// Model files of other programs: what they are, and how their weights come to dtrain.
#pragma once

#include <string>

namespace dtrain {

/// What a file that is no checkpoint of dtrain is, by its content, with the way around where there is one:
/// "a model that Keras saved as .keras: `dtrain import FILE` makes ...". "something else" for a file that
/// is not recognised. Opens HDF5 files: the caller holds no Hdf5Session.
std::string describe_file(const std::string& path);

/// Whether a regular file begins as HDF5 does; a checkpoint of dtrain does not.
bool begins_as_hdf5(const std::string& path);

/// Whether a file is an archive that Keras wrote (.keras).
bool is_keras_archive(const std::string& path);

/// Whether a file is recognised as a model of another program's.
bool is_foreign_model(const std::string& path);

}  // namespace dtrain

// Reads attributes of HDF5 objects that contain strings, in the format of h5py.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/keras_layout.h"
#include "hdf5/hdf5_heap.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Reads the attributes of one object that contain lists of names. The names are strings of fixed or variable
/// length. Keras splits a large list `name` into the attributes name0, name1 and so on, which are read as one
/// list. The heap must outlive this object. Requires an Hdf5Session and Hdf5References.
class NamesAttribute {
 public:
  NamesAttribute(hid_t object, std::string path, const Hdf5Heap& heap)
      : object_(object), path_(std::move(path)), heap_(heap) {}

  /// Returns true if the object has this list, in one attribute or split into several.
  bool exists(const std::string& name) const;
  /// Returns the names in a list. Returns an empty list if the attribute does not exist. Throws UserError if
  /// the attribute does not contain strings, or if the strings are larger than the file in total.
  std::vector<std::string> read(const std::string& name) const;

 private:
  void append(const std::string& name, std::vector<std::string>& names) const;
  void append_variable(hid_t attribute, const std::string& name, size_t count,
                       std::vector<std::string>& names) const;

  hid_t object_;
  std::string path_;
  const Hdf5Heap& heap_;
};

/// Name of the group that contains the weights in a file with a whole model. In a file with only weights, the
/// root takes the place of this group.
inline constexpr const char* kModelWeights = "model_weights";
/// Returns the layout of an open file. Requires an Hdf5Session. Throws UserError if a link points to another
/// file.
KerasLayout keras_layout(hid_t file, const std::string& path);

/// Returns the global heap of a file that was opened with libhdf5. The global heap stores strings of variable
/// length.
Hdf5Heap heap_of(hid_t opened, const std::string& path);

}  // namespace dtrain

// Attributes of an HDF5 object that hold strings, as h5py writes them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/keras_layout.h"
#include "hdf5/hdf5_heap.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Reads the attributes of one object that hold lists of names: strings of fixed or variable length. Keras
/// splits the list `name`, if it is large, into the attributes name0, name1 and so on, which are read as one
/// list. Keeps a reference to the heap. Requires an Hdf5Session and Hdf5References.
class NamesAttribute {
 public:
  NamesAttribute(hid_t object, std::string path, const Hdf5Heap& heap)
      : object_(object), path_(std::move(path)), heap_(heap) {}

  /// Returns whether the object has this list, whole or split.
  bool exists(const std::string& name) const;
  /// Returns the names; none if the attribute does not exist. Throws UserError if it does not hold strings,
  /// or if the strings together are larger than the file.
  std::vector<std::string> read(const std::string& name) const;

 private:
  void append(const std::string& name, std::vector<std::string>& names) const;
  void append_variable(hid_t attribute, const std::string& name, size_t count,
                       std::vector<std::string>& names) const;

  hid_t object_;
  std::string path_;
  const Hdf5Heap& heap_;
};

/// Group of the weights in a whole-model file; weights-only files have its content at their root.
inline constexpr const char* kModelWeights = "model_weights";
/// Returns the layout of an open file. Requires an Hdf5Session. Throws UserError if a link points outside the
/// file.
KerasLayout keras_layout(hid_t file, const std::string& path);

/// Returns the global heap of a file opened with libhdf5, which stores strings of variable length.
Hdf5Heap heap_of(hid_t opened, const std::string& path);

}  // namespace dtrain

// Attributes of an HDF5 object that hold names or text, as h5py writes them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/keras_layout.h"
#include "hdf5/hdf5_heap.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// An attribute of names, of fixed or of variable length; Keras splits one that is large into name0, name1,
/// ... Refers to the heap. Needs a session, and Hdf5References.
class NamesAttribute {
 public:
  NamesAttribute(hid_t object, std::string path, const Hdf5Heap& heap)
      : object_(object), path_(std::move(path)), heap_(heap) {}

  bool exists(const std::string& name) const;
  /// None where the attribute does not exist. Throws UserError where it holds no text, or longer text than
  /// the file has.
  std::vector<std::string> read(const std::string& name) const;

 private:
  void append(const std::string& name, std::vector<std::string>& names) const;
  void append_variable(hid_t attribute, const std::string& name, size_t count,
                       std::vector<std::string>& names) const;

  hid_t object_;
  std::string path_;
  const Hdf5Heap& heap_;
};

/// The group of a whole model's weights; files of weights alone have its content at their root.
inline constexpr const char* kModelWeights = "model_weights";
/// Of an open file. Needs a session. Throws UserError where a link leads out of the file.
KerasLayout keras_layout(hid_t file, const std::string& path);

/// The global heap of the file that libhdf5 has opened.
Hdf5Heap heap_of(hid_t opened, const std::string& path);

}  // namespace dtrain

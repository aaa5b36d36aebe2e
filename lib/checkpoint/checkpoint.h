// Checkpoints: one HDF5 file that holds a model, its optimizer and all counters of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/location.h"
#include "base/shape.h"

namespace dtrain {

/// A named array that somebody else owns, row major, on the host.
struct ArrayRef {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
  const void* data = nullptr;  ///< may be null where the shape has no elements

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * bytes_of(dtype); }
};

/// A layer's weights, trained or not, under bare names such as "kernel" and in Keras's array layouts.
struct LayerWeights {
  std::string layer;
  std::vector<ArrayRef> weights;
  std::string keras_name = "";  ///< the name under which Keras looks for the layer; "": its own
};

/// An optimizer's slot: one array for each trained weight, named "<layer>/<weight>".
struct OptimizerSlot {
  std::string name;
  std::vector<ArrayRef> arrays;
};

/// All that a checkpoint holds; the arrays stay with whoever made it.
struct CheckpointContent {
  std::vector<LayerWeights> layers;  ///< in Keras's order; layers without weights are listed, too
  Json model_config;                 ///< Keras's {class_name, config}
  Json training_config;              ///< Keras's loss, metrics and optimizer; null for none
  std::vector<OptimizerSlot> slots;
  Json state;               ///< seed, step, place in the epoch, partial sums: doubles keep their bits
  std::string history;      ///< the lines of metrics.jsonl
  std::string tables;       ///< the lines of tables.jsonl; "" for none
  std::string config_yaml;  ///< the configuration as resolved
};

/// Writes a checkpoint, which appears at `location` whole or not at all (a file that stood there is replaced
/// only then), and is on the disk when this returns. The same content gives the same bytes. Removes what dead
/// writers left in the directory. Throws Error, with the path and the reason, when the file cannot be
/// written: NoSpace (base/files/new_file.h) for want of space.
void save_checkpoint(const Location& location, const CheckpointContent& content);

/// A checkpoint in memory. Owns the bytes that the arrays of `content()` point into, so those can be copied
/// to a device, or saved again, as long as this lives; they are aligned to 8 bytes. Immutable: any thread may
/// read.
class Checkpoint {
 public:
  /// Reads and verifies the whole file. Throws UserError, with the path, what was expected and what was
  /// found, when it is missing, damaged or not a dtrain checkpoint.
  static Checkpoint load(const std::string& path);

  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  const std::string& path() const { return path_; }
  size_t file_bytes() const { return file_bytes_; }
  const CheckpointContent& content() const { return content_; }

  /// The weight "<layer>/<weight>", or null.
  const ArrayRef* weight(std::string_view name) const;
  /// The slot's array for the weight "<layer>/<weight>", or null.
  const ArrayRef* slot(std::string_view slot, std::string_view weight) const;

 private:
  Checkpoint() = default;

  std::string path_;
  size_t file_bytes_ = 0;
  std::shared_ptr<const std::byte[]> file_;
  CheckpointContent content_;
  std::unordered_map<std::string, const ArrayRef*> weights_;
  std::unordered_map<std::string, const ArrayRef*> slots_;  ///< by "<slot>/<layer>/<weight>"
};

/// Whether a file begins as checkpoints of dtrain do; the rest of it may be damaged.
bool begins_as_checkpoint(const Location& file);

/// The file name of a step's checkpoint: "ckpt-00000782.h5" for step 782.
std::string checkpoint_name(int64_t step);

/// The step in a file name that checkpoint_name made; nothing for other names.
std::optional<int64_t> checkpoint_step(const std::string& name);

/// The paths of the checkpoints in a directory, ordered by step; none where there is no such directory.
std::vector<std::string> list_checkpoints(const std::string& directory);

/// The steps of the checkpoints in a directory, ascending; none where there is no such directory.
std::vector<int64_t> checkpoint_steps(const Location& directory);

/// The version of the HDF5 library that the program was built with, "1.10.8", and of the one that it runs
/// with, where that is another.
std::string hdf5_version();

}  // namespace dtrain

// The file layout of a checkpoint.
//
//   bytes 0 to 511           dtrain's header, in HDF5's user block: the format version, and the length and
//                            checksum of the HDF5 file
//   from byte 512            the HDF5 file:
//     /                      attributes keras_version, backend, model_config and, optionally, training_config
//     /model_weights         attributes layer_names, keras_version, backend; the layers in Keras's order
//       /<layer>             attribute weight_names: "<layer>/<weight>:0", each a dataset in the group
//     /dtrain                attributes format and layer_names: dtrain's names of the layers, in the order of
//                            /model_weights
//       /state               JSON text, a uint8 dataset
//       /config              YAML text, a uint8 dataset
//       /history             content of metrics.jsonl, a uint8 dataset; earlier versions stored it in
//                            the state
//       /tables              content of tables.jsonl, a uint8 dataset; only if the run has this file
//       /optimizer           attribute slot_names
//         /<slot>            attribute weight_names: "<layer>/<weight>:0", each a dataset in the group
//
// Datasets are contiguous and little-endian. As in Keras, a list of names larger than kAttributeBytes is
// split into the attributes name0, name1, ...
//
// The order and the names of the layers are Keras's, because Keras assigns weights by the position of their
// layer, and Keras's layer names cannot contain '/'. In format 1, the layers had the order of the
// configuration and dtrain's names, and /dtrain had no attribute layer_names.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/hash.h"

namespace dtrain {

inline constexpr int kFormat = 2;
inline constexpr size_t kHeaderBytes = 512;
inline constexpr size_t kAttributeBytes = 64512;
inline constexpr size_t kAlignment = 8;  ///< alignment of each dataset's first byte

inline constexpr char kWeights[] = "/model_weights";
inline constexpr char kOwn[] = "/dtrain";
inline constexpr char kOptimizer[] = "/dtrain/optimizer";
inline constexpr char kState[] = "/dtrain/state";
inline constexpr char kHistory[] = "/dtrain/history";
inline constexpr char kTables[] = "/dtrain/tables";
inline constexpr char kConfig[] = "/dtrain/config";
inline constexpr char kLayerNames[] = "layer_names";
inline constexpr char kWeightNames[] = "weight_names";
inline constexpr char kSlotNames[] = "slot_names";
inline constexpr char kModelConfig[] = "model_config";
inline constexpr char kTrainingConfig[] = "training_config";
inline constexpr char kSuffix[] = ":0";  ///< suffix of the names of arrays, as in TensorFlow

/// Returns the header of a checkpoint, which has kHeaderBytes bytes. `image`: the parts of the HDF5 file that
/// follows the header.
std::string make_header(Parts image);

/// Checks the header of a checkpoint and the bytes after it: their number and their checksum must match the
/// header. Returns the format version. Throws UserError if the check fails.
int verify_header(const std::string& path, std::span<const std::byte> file);

}  // namespace dtrain

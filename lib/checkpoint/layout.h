// Where things stand in a checkpoint.
//
//   bytes 0..511             dtrain's header (HDF5's user block): format, length and checksum of all that
//   follows byte 512 on              the HDF5 file
//     /                      attributes keras_version, backend, model_config, training_config (or none)
//     /model_weights         attributes layer_names, keras_version, backend; the layers in Keras's order
//       /<layer>             attribute weight_names: "<layer>/<weight>:0", each a dataset inside the group
//     /dtrain                attributes format, layer_names: dtrain's own names of the layers above, in their
//     order
//       /state, /config      JSON and YAML text, as uint8 datasets
//       /history             the lines of metrics.jsonl, as a uint8 dataset; earlier versions had them in the
//       state /optimizer           attribute slot_names
//         /<slot>            attribute weight_names: "<layer>/<weight>:0", each a dataset inside the group
//
// Datasets are contiguous and little endian. An attribute of names that is larger than kAttributeBytes is
// split into name0, name1, ..., as Keras does.
//
// Keras takes the weights by their position among the layers, and knows layers by names without '/'. In
// format 1 the layers stood in the configuration's order under dtrain's names, and /dtrain had no
// layer_names.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/hash.h"

namespace dtrain {

inline constexpr int kFormat = 2;
inline constexpr size_t kHeaderBytes = 512;
inline constexpr size_t kAttributeBytes = 64512;
inline constexpr size_t kAlignment = 8;  ///< of datasets

inline constexpr char kWeights[] = "/model_weights";
inline constexpr char kOwn[] = "/dtrain";
inline constexpr char kOptimizer[] = "/dtrain/optimizer";
inline constexpr char kState[] = "/dtrain/state";
inline constexpr char kHistory[] = "/dtrain/history";
inline constexpr char kConfig[] = "/dtrain/config";
inline constexpr char kLayerNames[] = "layer_names";
inline constexpr char kWeightNames[] = "weight_names";
inline constexpr char kSlotNames[] = "slot_names";
inline constexpr char kModelConfig[] = "model_config";
inline constexpr char kTrainingConfig[] = "training_config";
inline constexpr char kSuffix[] = ":0";  ///< of each array's name, as TensorFlow has it

/// The kHeaderBytes before an HDF5 file of these parts.
std::string make_header(Parts image);

/// The file's format. Throws UserError unless the file is a header and the very bytes that it was made for.
int verify_header(const std::string& path, std::span<const std::byte> file);

}  // namespace dtrain

// Loads a model's initial weights from a file (`model.weights`), and vocabularies from a checkpoint
// (`dataset.vocabulary_from`).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/data_facts.h"
#include "interop/weight_file.h"
#include "nn/graph.h"
#include "run/run_config.h"

namespace dtrain {

/// A weight of a PyTorch file, converted to a weight of the model: with its axes in Keras's order, and with
/// one bias instead of two.
struct TorchArray {
  ArrayRef array;
  std::vector<float> values;  // elements of `array`, if they differ from those in the file
};

/// The weights of a file that initialize a model.
struct Pretrained {
  std::string path;
  WeightFile file;  // owns the arrays
  // Arrays of the file, by the names of the model's weights that they initialize. Other weights of the model
  // keep their initial values.
  std::map<std::string, const ArrayRef*> weights;
  std::deque<TorchArray> of_torch;  // converted weights of a PyTorch file
  std::vector<std::string> warnings;
  std::string description;  // such as "12 of 14 weights from base.h5; with initial values: 'head/kernel'"
};

/// Reads the file of graph.pretrained, which must be set. Throws UserError if weights of the model are
/// missing in the file or have a different shape, if weights of the file are unused, or if a pattern matches
/// no weight. The message lists all of these problems with their locations.
Pretrained load_pretrained(const Graph& graph);

/// Adds the vocabularies of `dataset.vocabulary_from` to the facts of the data set, so that the training
/// split does not learn different vocabularies. Does nothing if this option is not set. Calls `warn` for
/// damaged checkpoints. Throws UserError if the checkpoint cannot be read or has no vocabulary.
void load_vocabularies(RunConfig& config, const std::function<void(const std::string&)>& warn);

/// Returns a warning for each vocabulary and each list of categories that differs from that of the run whose
/// checkpoint `pretrained` loads weights from. In this case, loaded weights belong to different tokens or
/// categories. `facts` describes the training data of this run. Returns nothing if the file is not a
/// checkpoint of dtrain.
std::vector<std::string> warnings_of_vocabularies(const Graph& graph, const DataFacts& facts,
                                                  const Pretrained& pretrained);

}  // namespace dtrain

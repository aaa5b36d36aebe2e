#include "run/checks/dataset_checks.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "data/readers/reader.h"
#include "nn/shorter_model.h"

namespace dtrain {

namespace {

/// Reports target masks with more classes than the output of the model can predict. The classes of the masks
/// come from the reader's option `classes` and the augmentations' option `fill_class`.
void check_mask_classes(const RunConfig& config, Diagnostics& diagnostics) {
  if (config.graph.nodes.empty() || config.heads.size() != 1) return;
  const Head& head = config.heads[0];
  if (!head.loss || !head.loss->tells_classes()) return;
  const int64_t units = std::max<int64_t>(config.graph.spec(head.output).shape.columns(), 2);
  for (const char* name : kSplitNames) {
    const SplitSpec* split = config.dataset.find(name);
    if (!split || split->drawn || !split->reader) continue;
    const auto classes = static_cast<int64_t>(split->reader->mask_classes().colors.size());
    if (classes > units)
      diagnostics.error(split->mark,
                        fmt::format("target_images: the option 'classes' lists {} classes, but the output "
                                    "'{}' has only {}",
                                    classes, config.graph.layer_name(head.output.node), units));
  }
  const SplitSpec* train = config.dataset.find("train");
  if (!train || !train->reader || train->reader->target_picture() != TargetPicture::classes) return;
  for (const Configured<Augmentation>& augmentation : config.dataset.augment)
    if (const int64_t filled = augmentation ? augmentation->filled_class() : 0; filled >= units)
      diagnostics.error(
          augmentation.resolved.mark(),
          fmt::format("{}: fill_class is {}, but the output '{}' has only {} classes, numbered from 0",
                      augmentation.name, filled, config.graph.layer_name(head.output.node), units));
}

/// Returns "32 x 30 pixels" for the shape [30, 32] or [30, 32, channels].
std::string pixels_of(const Shape& shape) {
  return fmt::format("{} x {} pixels", shape[1], shape[0]);
}

/// Warns if the masks are resized because the output size differs from the input size. Does not warn if the
/// option `size` of `target_images` is given.
void warn_of_resized_masks(const RunConfig& config, Diagnostics& diagnostics) {
  const SplitSpec* const train = config.dataset.find("train");
  if (!train || !train->reader || train->reader->target_picture() != TargetPicture::classes) return;
  if (config.graph.nodes.empty() || config.graph.inputs.size() != 1 || config.heads.size() != 1) return;
  const ConfigNode* const options = train->reader.resolved.find(train->reader.name);
  const ConfigNode* const masks = options ? options->find("target_images") : nullptr;
  const ConfigNode* const size = masks ? masks->find("size") : nullptr;
  if (size && !size->is_null()) return;
  const TensorSpec input = config.graph.input_specs()[0];
  const ValueRef value = config.heads[0].output;
  const Shape& output = config.graph.spec(value).shape;
  if (input.shape.rank() < 2 || output.rank() < 2) return;
  if (input.shape[0] == output[0] && input.shape[1] == output[1]) return;
  diagnostics.warning(
      train->mark,
      fmt::format("target_images: the masks are resized, because the input '{}' has {}, but the output '{}' "
                  "has {}; with `padding: same`, a convolution keeps the size. To resize the masks without "
                  "this warning, set `size` in target_images",
                  input.name, pixels_of(input.shape), config.graph.layer_name(value.node),
                  pixels_of(output)));
}

/// Checks that transforms, targets that are inputs, windows and masks match the inputs and targets of the
/// model. Does nothing if the targets are not known because the loss of an output has errors.
void check_transforms_fit(const RunConfig& config, Diagnostics& diagnostics) {
  const auto has_loss = [](const Head& head) { return head.loss != nullptr; };
  if (!std::all_of(config.heads.begin(), config.heads.end(), has_loss)) return;
  const std::vector<TensorSpec> inputs = config.graph.input_specs(), targets = config.targets();
  check_transforms(config.dataset.transforms, inputs, targets, diagnostics);
  check_input_targets(config.dataset, inputs, targets, diagnostics);
  check_windows(config.dataset, inputs, targets, diagnostics);
  check_mask_classes(config, diagnostics);
  warn_of_resized_masks(config, diagnostics);
}

/// Reports an error if `vocabulary_from` is set but the training split has no text.
void check_vocabulary(const RunConfig& config, Diagnostics& diagnostics) {
  const SplitSpec* const train = config.dataset.find("train");
  if (config.dataset.vocabulary_from.empty() || !train) return;
  const auto ids = train->reader->token_ids(config.graph.input_specs());
  if (std::none_of(ids.begin(), ids.end(), [](const auto& size) { return size.has_value(); }))
    diagnostics.error(config.place({"dataset", "vocabulary_from"}),
                      "vocabulary_from: the training split has no text; remove this option");
}

/// Reports splits with text whose vocabulary is larger than the input_dim of the layer that reads the tokens,
/// such as an embedding.
void check_token_ids(const RunConfig& config, Diagnostics& diagnostics) {
  for (const char* name : kSplitNames) {
    const SplitSpec* split = config.dataset.find(name);
    if (!split || split->drawn) continue;
    const auto ids = split->reader->token_ids(config.graph.input_specs());
    for (size_t i = 0; i < ids.size(); ++i) {
      const GraphNode* const layer = config.graph.reader_of_indices(config.graph.inputs[i]);
      if (!ids[i] || !layer || *layer->layer->indices() >= *ids[i]) continue;
      diagnostics.error(split->mark,
                        fmt::format("{}: the text of this split has up to {} different tokens, but '{}' "
                                    "takes only {}; set its input_dim to {}, or use a smaller vocabulary",
                                    name, *ids[i], layer->name, *layer->layer->indices(), *ids[i]));
    }
  }
}

}  // namespace

void check_dataset_fits(const RunConfig& config, Diagnostics& diagnostics) {
  check_transforms_fit(config, diagnostics);
  check_vocabulary(config, diagnostics);
  check_token_ids(config, diagnostics);
}

void check_lengths(const RunConfig& config, Diagnostics& diagnostics) {
  if (!config.dataset.batches.bucket_by_length) return;
  try {
    const int64_t positions = padded_sequences(config.graph).positions;
    if (positions > 1) shorter_model(config.graph, config.heads, positions - 1);
  } catch (const LengthError& error) {
    diagnostics.error(error.mark.file ? error.mark : config.place({"dataset", "batches"}), error.message);
  }
}

}  // namespace dtrain

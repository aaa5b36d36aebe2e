#include "profile/new_recipe.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

TrainingLength length_for_rows(int64_t rows) {
  if (rows < 2'000) return {60, 16, 20};
  if (rows < 20'000) return {60, 32, 20};
  if (rows < 200'000) return {40, 128, 10};
  return {20, 512, 5};
}

TrainingLength length_for_pictures(int64_t pictures) {
  return {30, pictures < 2'000 ? 16 : 32, 8};
}

std::string epochs_text(const TrainingLength& length) {
  return fmt::format("  epochs: {:<28}# maximum; see early_stopping\n  batch_size: {}\n", length.epochs,
                     length.batch_size);
}

void check_can_be_split(const std::string& path, int64_t count, const std::string& samples) {
  constexpr int64_t kLeast = 3;
  if (count < kLeast)
    throw UserError(
        fmt::format("{}: expected at least {} samples (they are divided into training, validation and test "
                    "samples), found {}",
                    path, kLeast, samples));
}

std::string drawn_split(const char* name, bool stratify) {
  return fmt::format("  {}: {{split: {{of: train, fraction: 0.15{}, seed: 1}}}}\n", name,
                     stratify ? ", stratify: true" : "");
}

std::string schedule_text(const TrainingLength& length) {
  return fmt::format(
      "  optimizer:\n"
      "    # The learning rate decreases from 0.002 to 0 along a cosine over all epochs.\n"
      "    adamw: {{learning_rate: {{cosine_decay: {{initial: 0.002, steps: auto}}}}, weight_decay: 0.1}}\n"
      "  callbacks: [{{early_stopping: {{monitor: val_loss, patience: {}}}}}]\n\n"
      "checkpoint: {{best: {{monitor: val_loss}}}}   # used by `dtrain predict`\n",
      length.patience);
}

}  // namespace dtrain

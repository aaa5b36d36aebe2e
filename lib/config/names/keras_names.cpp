// Defines find_keras_name(): Keras's names are accepted in addition to dtrain's.
#include <array>
#include <cctype>
#include <string>

#include "config/names/aliases.h"

namespace dtrain {

namespace {

/// Maps a name in Keras (`word`) to a name in dtrain (`here`). `word` is a short name or a name from Keras 2.
struct ShortName {
  std::string_view word, here;
};
constexpr auto kShortNames = std::to_array<ShortName>({
    {"mse", "mean_squared_error"},
    {"mae", "mean_absolute_error"},
    {"mape", "mean_absolute_percentage_error"},
    {"msle", "mean_squared_logarithmic_error"},
    {"bce", "binary_crossentropy"},
    {"huberloss", "huber"},
    {"kullbackleiblerdivergence", "kl_divergence"},
    {"kld", "kl_divergence"},
    {"logcosh", "log_cosh"},
    {"acc", "accuracy"},
    {"meaniou", "mean_iou"},
    {"swish", "silu"},
    {"hardswish", "hard_silu"},
    {"uniform", "random_uniform"},
    {"normal", "random_normal"},
    {"zero", "zeros"},
    {"one", "ones"},
    {"orthogonalinitializer", "orthogonal"},
});

/// Keras classes whose names differ from dtrain's names in camel case.
constexpr auto kClasses = std::to_array<ShortName>({
    {"SGD", "sgd"},
    {"RMSprop", "rmsprop"},
    {"PReLU", "prelu"},
    {"LSTM", "lstm"},
    {"GRU", "gru"},
    {"SimpleRNN", "simple_rnn"},
    {"UpSampling1D", "upsampling1d"},
    {"UpSampling2D", "upsampling2d"},
    {"UpSampling3D", "upsampling3d"},
    {"RMSNormalization", "rms_normalization"},
    {"AdamW", "adamw"},
    {"AUC", "auc"},
    {"MeanIoU", "mean_iou"},
    {"KLDivergence", "kl_divergence"},
    {"PiecewiseConstantDecay", "piecewise_constant"},
    {"TerminateOnNaN", "terminate_on_nan"},
    {"TensorBoard", "tensorboard"},
});

/// Returns the Keras class for a name: "MaxPooling2D" for "max_pooling2d".
std::string keras_class(std::string_view kind) {
  for (const ShortName& known : kClasses)
    if (known.here == kind) return std::string(known.word);
  std::string name;
  char last = '_';
  for (const char c : kind) {
    const bool upper = last == '_' || (c == 'd' && std::isdigit(static_cast<unsigned char>(last)));
    if (c != '_') name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    last = c;
  }
  return name;
}

}  // namespace

std::string_view find_keras_name(std::string_view name, std::span<const std::string> candidates) {
  std::string_view meant;
  const std::string plain = plain_name(name);
  for (const ShortName& known : kShortNames)
    if (known.word == plain && name.find('.') == std::string_view::npos) meant = known.here;
  for (const std::string& candidate : candidates)
    if (candidate == meant || keras_class(candidate) == name) return candidate;
  return {};
}

}  // namespace dtrain

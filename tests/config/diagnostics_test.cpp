#include "config/diagnostics.h"

#include <algorithm>

#include "config/names/aliases.h"
#include "support.h"

namespace dtrain::test {

namespace {

Mark at(const std::string& file, int line, int column) {
  return {std::make_shared<const std::string>(file), line, column};
}

const std::vector<std::string> kWords = {"kernel_size", "strides", "padding", "filters"};

}  // namespace

TEST_CASE("a mark names file, line and column") {
  CHECK(at("a.yaml", 14, 7).str() == "a.yaml:14:7");
  CHECK(at("--set a=1", 0, 0).str() == "--set a=1");
  CHECK(Mark{}.str() == "");
}

TEST_CASE("messages are sorted by location and not repeated") {
  Diagnostics diagnostics;
  CHECK_FALSE(diagnostics.has_errors());
  diagnostics.throw_if_errors();
  diagnostics.error(at("b", 10, 1), "third");
  diagnostics.error(at("b", 9, 5), "second");
  diagnostics.error(at("a", 1, 1), "in another file");
  diagnostics.error(at("b", 9, 2), "first");
  diagnostics.error(at("b", 9, 5), "second");
  CHECK(messages(diagnostics) ==
        "b:9:2: error: first\nb:9:5: error: second\nb:10:1: error: third\na:1:1: error: in another file");
}

TEST_CASE("at most 100 messages are shown, with the number of omitted messages") {
  Diagnostics diagnostics;
  for (int i = 1; i <= 130; ++i) diagnostics.error(at("a", i, 1), "no");
  const std::string text = messages(diagnostics);
  CHECK(std::count(text.begin(), text.end(), '\n') == 100);
  CHECK(text.ends_with("a:100:1: error: no\n... and 30 more"));
}

TEST_CASE("warnings are listed separately, and do not count as errors") {
  Diagnostics diagnostics;
  diagnostics.warning(at("b", 3, 1), "second");
  diagnostics.warning(at("b", 1, 1), "first");
  diagnostics.throw_if_errors();
  CHECK(diagnostics.count() == 0);
  CHECK(diagnostics.warnings() ==
        std::vector<std::string>{"b:1:1: warning: first", "b:3:1: warning: second"});
}

TEST_CASE("error_at() adds the location to the message") {
  CHECK(std::string(error_at(at("a", 1, 2), "no").what()) == "a:1:2: error: no");
  CHECK(std::string(error_at(Mark{}, "no").what()) == "error: no");
}

TEST_CASE("only a similar word is suggested") {
  CHECK(suggestion("kernal_size", kWords) == "; did you mean 'kernel_size'?");
  CHECK(suggestion("stride", kWords) == "; did you mean 'strides'?");
  CHECK(suggestion("paddign", kWords) == "; did you mean 'padding'?");
  CHECK(suggestion("activation", kWords) == "");
  CHECK(suggestion("", kWords) == "");
  CHECK(suggestion("x", std::vector<std::string>{"y"}) == "");
  CHECK(suggestion("KernelSize", kWords) == "; did you mean 'kernel_size'?");
  CHECK(suggestion("kernel-sise", kWords) == "; did you mean 'kernel_size'?");
  CHECK(suggestion_or_list("zzz", std::vector<std::string>{"same", "valid"}) ==
        "; expected one of same, valid");
}

TEST_CASE("Keras's names are accepted, and names of other tools are rejected") {
  const std::vector<std::string> kinds{"dense",
                                       "conv2d_transpose",
                                       "max_pooling2d",
                                       "mean_squared_error",
                                       "adam",
                                       "sgd",
                                       "rmsprop",
                                       "f1_score",
                                       "auc",
                                       "accuracy",
                                       "piecewise_constant",
                                       "silu"};
  for (const auto& [name, kind] :
       std::vector<std::pair<std::string, std::string>>{{"Dense", "dense"},
                                                        {"Conv2DTranspose", "conv2d_transpose"},
                                                        {"MaxPooling2D", "max_pooling2d"},
                                                        {"MSE", "mean_squared_error"},
                                                        {"mse", "mean_squared_error"},
                                                        {"MeanSquaredError", "mean_squared_error"},
                                                        {"Adam", "adam"},
                                                        {"SGD", "sgd"},
                                                        {"RMSprop", "rmsprop"},
                                                        {"F1Score", "f1_score"},
                                                        {"AUC", "auc"},
                                                        {"acc", "accuracy"},
                                                        {"PiecewiseConstantDecay", "piecewise_constant"},
                                                        {"swish", "silu"}})
    CHECK(find_keras_name(name, kinds) == kind);
  for (const char* name :
       {"dense_", "Linear", "nn.Conv2d", "ConvTranspose2d", "MaxPool2d", "MSELoss", "Sgd", "", "x.mse"})
    CHECK(find_keras_name(name, kinds) == "");
}

TEST_CASE("dtrain's name is suggested for names of other tools") {
  using Words = std::vector<std::string>;
  const Words losses{"sparse_categorical_crossentropy", "binary_crossentropy", "mean_squared_error"};
  CHECK(suggestion("mse", losses) == "; did you mean 'mean_squared_error'?");
  CHECK(suggestion("nn.MSELoss", losses) == "; did you mean 'mean_squared_error'?");
  CHECK(suggestion("BinaryCrossentropy", losses) == "; did you mean 'binary_crossentropy'?");
  CHECK(suggestion("bce", losses) == "; did you mean 'binary_crossentropy'?");
  CHECK(contains(suggestion("CrossEntropyLoss", losses), "{from_logits: true}"));
  const Words layers{"dense", "conv2d", "max_pooling2d", "batch_normalization", "activation"};
  CHECK(suggestion("Conv2D", layers) == "; did you mean 'conv2d'?");
  CHECK(suggestion("nn.Linear", layers) == "; did you mean 'dense'?");
  CHECK(suggestion("MaxPool2d", layers) == "; did you mean 'max_pooling2d'?");
  CHECK(suggestion("nn.SyncBatchNorm", layers) == "; use `batch_normalization: {synchronized: true}`");
  CHECK(suggestion("nn.ReLU", layers) == "; write activation: relu");
  const Words adam{"learning_rate", "weight_decay", "beta_1", "beta_2", "epsilon"};
  CHECK(suggestion("lr", adam) == "; did you mean 'learning_rate'?");
  CHECK(suggestion("global_clipnorm", adam) == "; gradients are clipped by clip_norm under train");
  CHECK(suggestion("clipvalue", adam) == "; gradients are clipped by clip_value under train");
  const Words train{"epochs", "batch_size", "loss", "optimizer", "clip_norm"};
  CHECK(suggestion("batchSize", train) == "; did you mean 'batch_size'?");
  CHECK(suggestion("global_clipnorm", train) == "; did you mean 'clip_norm'?");
  CHECK(contains(suggestion("scheduler", train), "learning_rate: {reduce_on_plateau"));
  CHECK(contains(suggestion("validation_split", Words{"accumulate", "epochs"}), "split: {of: train"));
  CHECK(contains(suggestion("ReduceLROnPlateau", Words{"early_stopping", "ema"}), "reduce_on_plateau"));
  CHECK(suggestion("epochs:5", train) == "; a space is missing after the colon: 'epochs: 5'");
  CHECK(suggestion("cpu:5", train) == "");
  CHECK(contains(suggestion("learning-rate", train), "option of the optimizer"));
  CHECK(contains(suggestion("in_channels", Words{"filters", "kernel_size"}), "leave it out"));
}

}  // namespace dtrain::test

#include "config/aliases.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace dtrain {

namespace {

/// `word`, plain, stands for `here` where that is known; with an advice, `here` only says which part of a
/// configuration it is for.
struct Entry {
  std::string_view word, here, advice = {};
};

constexpr std::string_view kOfOptimizer = "it is an option of the optimizer: {adam: {learning_rate: 0.001}}";
constexpr std::string_view kInferred = "leave it out: what a layer reads says it";
constexpr std::string_view kUnderTrain = "it stands under train";
constexpr std::string_view kUnderDataset = "it stands under dataset";
constexpr std::string_view kClipping = "gradients are clipped under train: clip_norm";
constexpr std::string_view kFromLogits =
    "it is sparse_categorical_crossentropy: {from_logits: true}, of class numbers";

constexpr auto kEntries = std::to_array<Entry>({
    // Losses and metrics.
    {"mse", "mean_squared_error"},
    {"mseloss", "mean_squared_error"},
    {"l2", "mean_squared_error"},
    {"l2loss", "mean_squared_error"},
    {"mae", "mean_absolute_error"},
    {"l1", "mean_absolute_error"},
    {"l1loss", "mean_absolute_error"},
    {"bce", "binary_crossentropy"},
    {"bceloss", "binary_crossentropy"},
    {"logloss", "binary_crossentropy"},
    {"bcewithlogits", "binary_crossentropy", "it is binary_crossentropy: {from_logits: true}"},
    {"bcewithlogitsloss", "binary_crossentropy", "it is binary_crossentropy: {from_logits: true}"},
    {"crossentropy", "sparse_categorical_crossentropy", kFromLogits},
    {"crossentropyloss", "sparse_categorical_crossentropy", kFromLogits},
    {"nll", "sparse_categorical_crossentropy"},
    {"nllloss", "sparse_categorical_crossentropy"},
    {"cce", "categorical_crossentropy"},
    {"scce", "sparse_categorical_crossentropy"},
    {"huberloss", "huber"},
    {"smoothl1loss", "huber"},
    {"acc", "accuracy"},
    {"top5", "top_k"},
    {"topk", "top_k"},
    // Optimizers, their options and schedules.
    {"stochasticgradientdescent", "sgd"},
    {"gradientdescent", "sgd"},
    {"lr", "learning_rate"},
    {"rate", "learning_rate"},
    {"stepsize", "learning_rate"},
    {"betas", "beta_1", "it is beta_1 and beta_2"},
    {"eps", "epsilon"},
    {"alpha", "rho"},
    {"decay", "weight_decay"},
    {"wd", "weight_decay"},
    {"l2", "weight_decay"},
    {"clipnorm", "clip_norm"},
    {"globalclipnorm", "clip_norm"},
    {"maxgradnorm", "clip_norm"},
    {"gradclip", "clip_norm"},
    {"gradientclipval", "clip_norm"},
    {"gradientclipping", "clip_norm"},
    {"clipnorm", "learning_rate", kClipping},
    {"globalclipnorm", "learning_rate", kClipping},
    {"maxgradnorm", "learning_rate", kClipping},
    {"clipvalue", "learning_rate", kClipping},
    {"steplr", "piecewise_constant"},
    {"multisteplr", "piecewise_constant"},
    {"step", "piecewise_constant"},
    {"exponentiallr", "exponential_decay"},
    {"exponential", "exponential_decay"},
    {"cosineannealinglr", "cosine_decay"},
    {"cosineannealing", "cosine_decay"},
    {"cosine", "cosine_decay"},
    {"reducelronplateau", "reduce_on_plateau"},
    {"initiallearningrate", "initial"},
    {"gamma", "decay_rate"},
    {"stepsize", "decay_steps"},
    {"tmax", "steps"},
    {"milestones", "boundaries"},
    // Layers.
    {"linear", "dense"},
    {"fc", "dense"},
    {"fullyconnected", "dense"},
    {"conv", "conv2d"},
    {"convolution", "conv2d"},
    {"convolution2d", "conv2d"},
    {"convtranspose2d", "conv2d_transpose"},
    {"deconv", "conv2d_transpose"},
    {"deconv2d", "conv2d_transpose"},
    {"depthwiseconv", "depthwise_conv2d"},
    {"maxpool2d", "max_pooling2d"},
    {"maxpool", "max_pooling2d"},
    {"maxpooling", "max_pooling2d"},
    {"avgpool2d", "average_pooling2d"},
    {"avgpool", "average_pooling2d"},
    {"averagepooling", "average_pooling2d"},
    {"adaptiveavgpool2d", "global_average_pooling2d"},
    {"globalavgpool", "global_average_pooling2d"},
    {"globalaveragepooling", "global_average_pooling2d"},
    {"adaptivemaxpool2d", "global_max_pooling2d"},
    {"globalmaxpool", "global_max_pooling2d"},
    {"batchnorm", "batch_normalization"},
    {"batchnorm1d", "batch_normalization"},
    {"batchnorm2d", "batch_normalization"},
    {"bn", "batch_normalization"},
    {"layernorm", "layer_normalization"},
    {"ln", "layer_normalization"},
    {"dropout1d", "dropout"},
    {"dropout2d", "dropout"},
    {"concat", "concatenate"},
    {"cat", "concatenate"},
    {"merge", "concatenate"},
    {"pad", "zero_padding2d"},
    {"zeropad2d", "zero_padding2d"},
    {"residual", "add"},
    {"sum", "add"},
    {"mul", "multiply"},
    {"view", "reshape"},
    {"embed", "embedding"},
    {"relu", "activation", "write activation: relu"},
    {"leakyrelu", "activation", "write activation: leaky_relu"},
    {"elu", "activation", "write activation: elu"},
    {"gelu", "activation", "write activation: gelu"},
    {"silu", "activation", "write activation: silu"},
    {"swish", "activation", "write activation: silu"},
    {"tanh", "activation", "write activation: tanh"},
    {"sigmoid", "activation", "write activation: sigmoid"},
    {"softmax", "activation", "write activation: softmax"},
    // Options of layers.
    {"outfeatures", "units"},
    {"features", "units"},
    {"outputsize", "units"},
    {"nodes", "units"},
    {"neurons", "units"},
    {"outchannels", "filters"},
    {"channels", "filters"},
    {"outputchannels", "filters"},
    {"infeatures", "units", kInferred},
    {"inputsize", "units", kInferred},
    {"inchannels", "kernel_size", kInferred},
    {"inputchannels", "kernel_size", kInferred},
    {"numfeatures", "momentum", kInferred},
    {"normalizedshape", "epsilon", kInferred},
    {"inputshape", "trainable", "a layer's input is inferred; the model's are its inputs: {name: shape}"},
    {"inputdim", "units", kInferred},
    {"kernel", "kernel_size"},
    {"size", "kernel_size"},
    {"kernelsize", "pool_size"},
    {"size", "pool_size"},
    {"dilation", "dilation_rate"},
    {"bias", "use_bias"},
    {"nonlinearity", "activation"},
    {"act", "activation"},
    {"p", "rate"},
    {"prob", "rate"},
    {"probability", "rate"},
    {"numembeddings", "input_dim"},
    {"vocabularysize", "input_dim"},
    {"vocabsize", "input_dim"},
    {"embeddingdim", "output_dim"},
    {"shape", "target_shape"},
    {"dim", "axis"},
    {"frozen", "trainable"},
    {"freeze", "trainable"},
    {"count", "repeat"},
    {"times", "repeat"},
    {"kernelregularizer", "use_bias", "weight decay is an option of the optimizer"},
    {"weightinitializer", "kernel_initializer"},
    {"init", "kernel_initializer"},
    {"xavier", "glorot_uniform"},
    {"xavieruniform", "glorot_uniform"},
    {"xaviernormal", "glorot_normal"},
    {"kaiming", "he_normal"},
    {"kaiminguniform", "he_uniform"},
    {"kaimingnormal", "he_normal"},
    {"uniform", "random_uniform"},
    {"normal", "random_normal"},
    {"truncnormal", "truncated_normal"},
    {"zero", "zeros"},
    {"one", "ones"},
    {"swish", "silu"},
    {"none", "linear"},
    {"identity", "linear"},
    {"logistic", "sigmoid"},
    // Training.
    {"batch", "batch_size"},
    {"bs", "batch_size"},
    {"nepochs", "epochs"},
    {"numepochs", "epochs"},
    {"maxepochs", "epochs"},
    {"criterion", "loss"},
    {"lr", "optimizer", kOfOptimizer},
    {"learningrate", "optimizer", kOfOptimizer},
    {"weightdecay", "optimizer", kOfOptimizer},
    {"momentum", "optimizer", kOfOptimizer},
    {"scheduler", "optimizer", "a schedule is the optimizer's learning_rate"},
    {"lrscheduler", "optimizer", "a schedule is the optimizer's learning_rate"},
    {"gradientaccumulationsteps", "accumulate"},
    {"gradientaccumulation", "accumulate"},
    {"amp", "precision"},
    {"mixedprecision", "precision"},
    {"fp16", "precision"},
    {"bf16", "precision"},
    {"earlystopping", "callbacks", "it is one of the callbacks: [{early_stopping: {patience: 3}}]"},
    {"shuffle", "accumulate", kUnderDataset},
    {"validationsplit", "prefetch", "give validation: the reader again, each with its rows: [from, to)"},
    {"batchsize", "prefetch", kUnderTrain},
    {"restorebestweights", "patience",
     "the best checkpoint is kept by checkpoint: {best: {monitor: val_loss}}"},
    {"savebestonly", "keep", "keep: 1 and best: {monitor: val_loss}"},
    {"minlr", "min"},
    {"modelcheckpoint", "early_stopping", "what is saved, and when, stands under checkpoint, beside train"},
    {"fp32", "float32"},
    {"bf16", "mixed_bfloat16"},
    {"bfloat16", "mixed_bfloat16"},
    {"fp16", "mixed_float16"},
    {"float16", "mixed_float16"},
    {"amp", "mixed_float16"},
    {"int", "int32"},
    {"int64", "int32"},
    {"float", "float32"},
    // The parts of a run.
    {"network", "model"},
    {"net", "model"},
    {"architecture", "model"},
    {"data", "dataset"},
    {"training", "train"},
    {"trainer", "train"},
    {"fit", "train"},
    {"saving", "checkpoint"},
    {"randomseed", "seed"},
    {"distribution", "strategy"},
    {"distribute", "strategy"},
    {"devices", "strategy", "it is an option of the strategy: {mirrored: {devices: [cpu:0, cpu:1]}}"},
    {"device", "strategy", "it is an option of the strategy: {single: {device: cpu:0}}"},
    {"epochs", "strategy", kUnderTrain},
    {"batchsize", "strategy", kUnderTrain},
    {"loss", "strategy", kUnderTrain},
    {"optimizer", "strategy", kUnderTrain},
    {"metrics", "strategy", kUnderTrain},
    {"callbacks", "strategy", kUnderTrain},
    {"precision", "strategy", kUnderTrain},
    {"val", "validation"},
    {"valid", "validation"},
    {"dev", "validation"},
    {"training", "train"},
    {"testing", "test"},
    {"preprocessing", "transforms"},
    {"ddp", "mirrored"},
    {"dataparallel", "mirrored"},
    {"distributeddataparallel", "mirrored"},
    {"mirroredstrategy", "mirrored"},
    {"onedevice", "single"},
    {"scaling", "rescale"},
    {"scale", "rescale"},
    {"normalise", "normalize"},
    {"normalization", "normalize"},
    {"standardize", "normalize"},
    {"onehotencoding", "one_hot"},
});

}  // namespace

std::string plain_name(std::string_view name) {
  // A module before it says nothing; what ends in a dot is no module.
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos && dot + 1 < name.size())
    name.remove_prefix(dot + 1);
  std::string plain;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) plain += static_cast<char>(std::tolower(byte));
  }
  return plain;
}

Alias find_alias(std::string_view word, std::span<const std::string> candidates) {
  const std::string plain = plain_name(word);
  for (const Entry& entry : kEntries) {
    if (entry.word != plain) continue;
    if (std::find(candidates.begin(), candidates.end(), entry.here) == candidates.end()) continue;
    return entry.advice.empty() ? Alias{entry.here, {}} : Alias{{}, entry.advice};
  }
  return {};
}

}  // namespace dtrain

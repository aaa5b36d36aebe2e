#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

void add_pooling_formats(std::vector<LayerFormats>& table) {
  table.push_back({"max_pooling2d", keras_image_layer("MaxPooling2D")});
  table.push_back({"average_pooling2d", keras_image_layer("AveragePooling2D")});
  table.push_back({"global_max_pooling2d", keras_image_layer("GlobalMaxPooling2D")});
  table.push_back({"global_average_pooling2d", keras_image_layer("GlobalAveragePooling2D")});
}

}  // namespace dtrain

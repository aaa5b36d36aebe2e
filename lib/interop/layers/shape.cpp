#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

void add_shape_formats(std::vector<LayerFormats>& table) {
  table.push_back({"zero_padding2d", keras_image_layer("ZeroPadding2D")});
  table.push_back({"cropping2d", keras_image_layer("Cropping2D")});
  table.push_back({"flatten", keras_image_layer("Flatten")});
  table.push_back({"reshape", keras_layer("Reshape")});
}

}  // namespace dtrain

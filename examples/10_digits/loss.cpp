// The mean cross entropy of logits against one-hot labels, with its gradient: a C++ module.
#include <cmath>

#include "ms_extension/api.h"

namespace {

using ms::Tensor;
using List = std::vector<Tensor>;
using Context = ms::AutogradContext;

const float* read(const Tensor& tensor) { return static_cast<const float*>(tensor.GetDataPtr()); }
float* write(const Tensor& tensor) { return static_cast<float*>(tensor.GetDataPtr()); }

struct CrossEntropy : ms::Function<CrossEntropy> {
  static Tensor Forward(Context* ctx, const Tensor& logits, const Tensor& labels) {
    const Tensor x = logits.contiguous(), wanted = labels.contiguous();
    const int64_t rows = x.shape()[0], classes = x.shape()[1];
    Tensor loss(x.data_type(), {}), difference(x.data_type(), x.shape());  // softmax - labels
    polyop::launch("cross_entropy", {x, wanted}, {loss, difference}, [&] {
      double total = 0;
      for (int64_t i = 0; i < rows; ++i) {
        const float *row = read(x) + i * classes, *label = read(wanted) + i * classes;
        float* to = write(difference) + i * classes;
        float most = row[0];
        for (int64_t k = 1; k < classes; ++k) most = std::fmax(most, row[k]);
        double sum = 0;
        for (int64_t k = 0; k < classes; ++k) sum += std::exp(row[k] - most);
        for (int64_t k = 0; k < classes; ++k) {
          const double logarithm = row[k] - most - std::log(sum);
          total -= label[k] * logarithm;
          to[k] = static_cast<float>(std::exp(logarithm) - label[k]);
        }
      }
      *write(loss) = static_cast<float>(total / static_cast<double>(rows));
    });
    ctx->SaveForBackward({difference});
    return loss;
  }

  static List Backward(Context* ctx, List grads) {
    const Tensor difference = ctx->GetSavedTensors()[0], grad = grads[0].contiguous();
    Tensor to_logits(difference.data_type(), difference.shape());
    polyop::launch("cross_entropy_gradient", {difference, grad}, {to_logits}, [&] {
      const float scale = *read(grad) / static_cast<float>(difference.shape()[0]);
      for (size_t i = 0; i < difference.numel(); ++i) write(to_logits)[i] = scale * read(difference)[i];
    });
    return {to_logits, Tensor()};
  }
};

Tensor cross_entropy(const Tensor& logits, const Tensor& labels) {
  return CrossEntropy::Apply(logits, labels);
}

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("cross_entropy", &cross_entropy); }

"""C++ that registers what a package binds with pybind11 alone, as docs/coming-from/torch.md says."""

DISCOUNTED = """
torch::Tensor discounted_cumsum_left_cpu(torch::Tensor x, torch::Tensor gamma);
torch::Tensor discounted_cumsum_right_cpu(torch::Tensor x, torch::Tensor gamma);
TORCH_LIBRARY(discounted, m) {
  m.def("left(Tensor x, Tensor gamma) -> Tensor");
  m.def("right(Tensor x, Tensor gamma) -> Tensor");
}
TORCH_LIBRARY_IMPL(discounted, CPU, m) {
  m.impl("left", &discounted_cumsum_left_cpu);
  m.impl("right", &discounted_cumsum_right_cpu);
}
"""
HOUSEHOLDER = """
at::Tensor orgqr_normalized_forward(torch::Tensor param);
at::Tensor orgqr_normalized_backward(torch::Tensor grad_out, torch::Tensor m, torch::Tensor param);
TORCH_LIBRARY(householder, m) {
  m.def("orgqr(Tensor param) -> Tensor");
  m.def("orgqr_backward(Tensor grad, Tensor m, Tensor param) -> Tensor");
}
TORCH_LIBRARY_IMPL(householder, CPU, m) {
  m.impl("orgqr", &orgqr_normalized_forward);
  m.impl("orgqr_backward", &orgqr_normalized_backward);
}
"""
QUADS = """
torch::Tensor calculateIoUCPUTorch(torch::Tensor a, torch::Tensor b, bool sort);
TORCH_LIBRARY(quad, m) { m.def("iou(Tensor a, Tensor b, bool sort=True) -> Tensor"); }
TORCH_LIBRARY_IMPL(quad, CPU, m) { m.impl("iou", &calculateIoUCPUTorch); }
"""
FARTHEST = """
namespace torch_fps {
at::Tensor fps_forward_cpu(const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t);
std::tuple<at::Tensor, at::Tensor> fps_with_knn_forward_cpu(
    const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t, int64_t);
}
TORCH_LIBRARY(torch_fps, m) {
  m.def("fps(Tensor points, Tensor mask, Tensor start, int k) -> Tensor");
  m.def("fps_knn(Tensor points, Tensor mask, Tensor start, int k, int near) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(torch_fps, CPU, m) {
  m.impl("fps", &torch_fps::fps_forward_cpu);
  m.impl("fps_knn", &torch_fps::fps_with_knn_forward_cpu);
}
"""
CLUSTERS = """
torch::Tensor dbscan2d(torch::Tensor x, double eps, int64_t least);
TORCH_LIBRARY(dbscan, m) { m.def("labels(Tensor x, float eps, int least) -> Tensor"); }
TORCH_LIBRARY_IMPL(dbscan, CPU, m) { m.impl("labels", &dbscan2d); }
"""
POINTS = """
#include "fps.h"
#include "interpolate.h"
#include "knn.h"
static at::Tensor farthest(const at::Tensor& points, int64_t n) { return fps(points, n, false); }
static std::tuple<at::Tensor, at::Tensor> nearest(const at::Tensor& support, const at::Tensor& query, int64_t k) {
  return dense_knn(support, query, k);
}
static at::Tensor back(const at::Tensor& grad, const at::Tensor& index, const at::Tensor& weight, int64_t m) {
  return knn_interpolate_grad(grad, index, weight, m);
}
TORCH_LIBRARY(points, m) {
  m.def("farthest(Tensor points, int n) -> Tensor");
  m.def("nearest(Tensor support, Tensor query, int k) -> (Tensor, Tensor)");
  m.def("interpolated(Tensor features, Tensor index, Tensor weight) -> Tensor");
  m.def("interpolated_back(Tensor grad, Tensor index, Tensor weight, int m) -> Tensor");
}
TORCH_LIBRARY_IMPL(points, CPU, m) {
  m.impl("farthest", &farthest);
  m.impl("nearest", &nearest);
  m.impl("interpolated", &knn_interpolate);
  m.impl("interpolated_back", &back);
}
"""

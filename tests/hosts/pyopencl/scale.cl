/* Rows times a number; one work-item for each element. */
__kernel void scale(__global const float *x, const float a, const int n, __global float *out) {
  const int row = get_global_id(1), i = get_global_id(0);
  out[row * n + i] = a * x[row * n + i];
}
__kernel void scale_grad(__global const float *restrict dout, float a, __global float *dx) {
  const size_t i = get_global_id(0);
  dx[i] = a * dout[i];
}

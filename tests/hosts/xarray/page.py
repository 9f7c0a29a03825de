"""The code of docs/hosts/xarray.md."""

# [first]
import numpy as np
import xarray as xr

import polyop

anomaly = polyop.operator(
    "page::anomaly(Tensor x) -> Tensor",
    lambda x: x - x.mean(-1, keepdims=True),
    dims="... time -> ... time",  # along the dimension time, wherever the array has it
)
smooth = polyop.operator(
    "page::smooth(Tensor x, Tensor w) -> Tensor",
    lambda x, w: np.correlate(x, w, "valid"),
    dims="n, k -> n-k+1",
)

temperature = xr.DataArray(
    np.random.default_rng(0).standard_normal((365, 4)),
    dims=("time", "city"),
    coords={"time": np.arange(365), "city": ["Bern", "Lima", "Oslo", "Rome"]},
)
print(anomaly(temperature).dims)  # ('city', 'time'): the operator's dimensions are the last ones

bern = temperature.sel(city="Bern")
week = smooth(bern, np.ones(7) / 7)
print(week.dims, week.sizes["time"])  # ('time',) 359: n is time, by position
# [/first]

assert anomaly(temperature).dims == ("city", "time") and week.sizes["time"] == 359
np.testing.assert_allclose(anomaly(temperature).mean("time"), 0, atol=1e-12)

# [dask]
chunked = temperature.chunk({"city": 2})
lazy = anomaly(chunked)  # a DataArray of a dask array: one call for each chunk of cities
print(lazy.compute().equals(anomaly(temperature)))
# [/dask]

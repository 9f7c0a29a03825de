"""Operators on arrays in chunks: in threads, in the worker processes of a cluster, in a pool of processes."""

import importlib.util
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from kernels import blur, column_means


def on_chunks():
    """Compute in threads of this process."""
    # [lazy]
    import dask.array as da

    image = da.random.default_rng(0).standard_normal((2000, 3000), chunks=500)
    smooth = blur(image)  # 24 blocks, each with the edges of its neighbours; nothing runs yet
    means = column_means(smooth)  # sums of blocks, added in a tree
    print(smooth)
    print(means.compute()[:3])
    # [/lazy]
    whole = image.compute()
    assert smooth.chunks == image.chunks
    assert np.allclose(smooth.compute(), blur(whole))
    assert np.allclose(means.compute(), blur(whole).mean(0))
    # [gradient]
    out, pull = blur.vjp(image)
    (gradient,) = pull(da.ones_like(out))
    # [/gradient]
    assert np.allclose(gradient.compute(), blur.vjp(whole)[1](np.ones_like(whole))[0])
    return image, means


def on_a_cluster(image, means):
    """Compute in two worker processes, which import kernels.py."""
    # [cluster]
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        again = column_means(blur(image)).compute()  # the client takes the place of dask's threads
    # [/cluster]
    assert np.allclose(again, means.compute(scheduler="threads"))
    print("the same on two worker processes")


def in_a_pool():
    """Map an operator over slices in other processes, without dask."""
    # [pool]
    images = np.random.default_rng(0).standard_normal((8, 100, 100))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as pool:
        blurred = list(pool.map(blur, images))  # blur is pickled by its name and a digest of its definition
    # [/pool]
    assert all(np.array_equal(one, blur(image)) for one, image in zip(blurred, images, strict=True))
    print(len(blurred), "images in a pool of processes")


if __name__ == "__main__":
    in_a_pool()
    if importlib.util.find_spec("dask") is None or importlib.util.find_spec("distributed") is None:
        print("dask and distributed are not installed")
    else:
        on_a_cluster(*on_chunks())

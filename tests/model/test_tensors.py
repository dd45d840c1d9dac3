"""What Python sees of tensors on the modelled device, and what the model refuses by name."""

from __future__ import annotations

import copy
import io
import pickle
import threading

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled


class TestView:
    """Devices, types, storages, texts."""

    def test_a_tensor_says_it_is_on_cuda(self):
        """Device, flags, type and storage agree."""
        x = torch.ones(2, device="cuda")

        assert (str(x.device), x.is_cuda, x.is_cpu, x.get_device()) == ("cuda:0", True, False, 0)
        assert (x.type(), torch.ones(2).type()) == ("torch.cuda.FloatTensor", "torch.FloatTensor")
        assert str(x.untyped_storage().device) == "cuda:0"
        assert x.untyped_storage().is_cuda
        assert str(x.storage().device) == "cuda:0"
        assert (x[1:].device, x.t().device, x.detach().device) == (x.device,) * 3

    def test_every_way_to_the_device_and_back(self):
        """`to`, `cuda`, `cpu`, `type`, with a dtype, a device object, an index, another tensor."""
        host = torch.arange(3)
        for device in (host.cuda(), host.to("cuda"), host.to(torch.device("cuda", 0)), host.to(0), host.to("cuda:0", torch.int64),
                       host.to(device="cuda"), host.type("torch.cuda.LongTensor"), torch.as_tensor(host, device="cuda"),
                       host.to(torch.zeros(1, dtype=torch.int64, device="cuda"))):  # fmt: skip
            assert device.is_cuda
            for back in (device.cpu(), device.to("cpu"), device.to(host)):
                assert back.device.type == "cpu"
                assert back.tolist() == [0, 1, 2]
        both = host.to("cuda", torch.float16)
        assert (both.dtype, both.is_cuda) == (torch.float16, True)
        assert both.to("cuda") is both
        assert both.to("cuda", copy=True) is not both

    def test_a_copy_has_no_gaps_and_no_repeats(self):
        """Views that are transposed, cut or expanded go to the device and back; what is dense keeps its strides."""
        plain = torch.arange(12.0).view(3, 4)
        strides = {"transposed": (1, 4), "cut": (2, 1), "expanded": (2, 1), "channels last": (16, 1, 8, 2)}
        views = {
            "transposed": plain.t(), "cut": plain[:, ::2], "expanded": plain[:, :1].expand(3, 2),
            "channels last": torch.arange(16.0).view(1, 2, 2, 4).contiguous(memory_format=torch.channels_last),
        }  # fmt: skip
        for name, view in views.items():
            there = view.cuda()
            assert there.stride() == strides[name], name
            assert torch.equal(there.cpu(), view)
            assert there.cpu().stride() == strides[name]
        there = plain.cuda()
        for view in (lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[:, :1].expand(3, 2)):
            assert torch.equal(view(there).cpu(), view(plain))

    def test_numpy_and_dlpack_are_not_given_device_memory(self):
        """`numpy()` raises torch's own error; the copy on the host has it."""
        x = torch.ones(2, device="cuda")
        with pytest.raises(TypeError, match="Use Tensor.cpu"):
            x.numpy()
        assert x.cpu().numpy().tolist() == [1, 1]

    def test_texts_name_the_device(self):
        """`repr` shows values and device, of an empty tensor and of one with gradients too."""
        x = torch.ones(2, device="cuda")

        assert repr(x) == "tensor([1., 1.], device='cuda:0')"
        assert "device='cuda:0'" in repr(torch.empty(0, device="cuda"))
        assert repr(x.requires_grad_()) == "tensor([1., 1.], device='cuda:0', requires_grad=True)"
        assert "device='cuda:0', grad_fn=" in repr(x * 2)
        assert f"{x.detach()[0]}" == "1.0"
        assert "cuda:0" in repr(torch.nn.Parameter(torch.ones(1, device="cuda")))

    def test_factories_follow_their_device(self):
        """`*_like` and `new_*` stay on the device unless the CPU is asked for."""
        x = torch.ones(2, device="cuda")
        ours = [
            torch.zeros_like(x),
            torch.empty_like(x),
            torch.rand_like(x),
            x.new_zeros(3),
            x.new_ones(3),
            x.new_full((2,), 1),
            x.new_tensor([1]),
        ]
        theirs = [
            torch.zeros_like(x, device="cpu"),
            x.new_zeros(3, device="cpu"),
            torch.randn_like(x, device="cpu"),
            x.new_tensor([1], device="cpu"),
        ]

        assert all(made.is_cuda for made in ours)
        assert not any(made.is_cuda for made in theirs)
        assert torch.ones(2, device="cuda:0").is_cuda
        assert not torch.ones(2).is_cuda

    def test_a_device_can_be_a_number(self):
        """As `rank` is, in programs for several processes."""
        made = [torch.zeros(2, device=0), torch.arange(3, device=0), torch.ones(2).to(0), torch.ones(2).cuda(0), torch.tensor([1], device=0)]
        nets = [torch.nn.Linear(2, 2, device=0), torch.nn.Linear(2, 2).to(0), torch.nn.Linear(2, 2).to(device=0, dtype=torch.float64)]

        assert {x.device for x in (*made, *(net.weight for net in nets))} == {torch.device("cuda", 0)}
        assert nets[2].weight.dtype == torch.float64

    def test_a_default_device_is_followed(self):
        """`set_default_device` and `with torch.device` reach factories and `torch.tensor`."""
        with torch.device("cuda"):
            inside = [torch.ones(2), torch.tensor([1.0]), torch.arange(3), torch.nn.Linear(2, 2).weight]
        torch.set_default_device("cuda")
        after = [torch.zeros(2), torch.tensor(1), torch.empty(2, device="cpu")]
        torch.set_default_device("cpu")

        assert all(made.is_cuda for made in inside)
        assert [made.is_cuda for made in after] == [True, True, False]

    def test_nested_values_become_a_tensor(self):
        """Lists with device tensors inside are read, one by one, as torch does."""
        one = torch.tensor(1.0, device="cuda")

        assert torch.tensor([[one, 2.0], [3.0, one]], device="cuda").tolist() == [[1, 2], [3, 1]]
        assert torch.tensor(one).is_cuda
        assert torch.tensor([1, 2], device="cuda", dtype=torch.float64, requires_grad=True).requires_grad

    def test_a_tensor_of_the_host_is_refused_beside_one_of_the_device(self):
        """Mixed devices raise torch's error; a 0-dim CPU tensor counts as a number."""
        x = torch.ones(2, device="cuda")
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            x + torch.ones(2)
        with pytest.raises(RuntimeError, match="same device"):
            torch.nn.Linear(2, 2)(x)
        assert (x + torch.tensor(2.0)).tolist() == [3, 3]

    def test_storages_can_be_compared_and_copied(self):
        """Two views share one storage; a deep copy and a clone have their own."""
        x = torch.ones(4, device="cuda")
        twin, clone = copy.deepcopy(x), x.clone()

        assert x[1:].untyped_storage().data_ptr() == x.data_ptr()
        assert len({x.data_ptr(), twin.data_ptr(), clone.data_ptr()}) == 3
        assert twin.is_cuda
        assert twin.tolist() == [1] * 4


class TestSaving:
    """Files."""

    def test_a_saved_tensor_comes_back_where_it_was(self):
        """`torch.save` notes the device, and `torch.load` returns to it, or goes where `map_location` says."""
        file = io.BytesIO()
        torch.save({"x": torch.arange(3.0, device="cuda"), "y": torch.ones(2)}, file)
        found = {}
        for where in (None, "cuda", "cpu", torch.device("cuda:0"), {"cuda:0": "cpu"}):
            file.seek(0)
            found[str(where)] = torch.load(file, map_location=where)

        assert [found[where]["x"].device.type for where in found] == ["cuda", "cuda", "cpu", "cuda", "cpu"]
        assert [found[where]["y"].device.type for where in found] == ["cpu", "cuda", "cpu", "cuda", "cpu"]
        assert all(loaded["x"].tolist() == [0, 1, 2] for loaded in found.values())

    def test_loaded_tensors_own_blocks(self):
        """A tensor loaded to the device is freed like any other."""
        file = io.BytesIO()
        torch.save(torch.ones(4), file)
        file.seek(0)
        before = torch.cuda.memory_allocated()
        x = torch.load(file, map_location="cuda")
        during = torch.cuda.memory_allocated()
        del x

        assert (during - before, torch.cuda.memory_allocated() - before) == (512, 0)

    def test_a_module_goes_to_the_device_and_its_state_round_trips(self):
        """`Module.to`, `cuda`, `state_dict`, `load_state_dict` and `torch.load` agree."""
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).to("cuda")
        file = io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        other = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).cuda()
        other.load_state_dict(torch.load(file, map_location="cuda"))
        x = torch.randn(4, 3, device="cuda")

        assert all(value.is_cuda for value in module.state_dict().values())
        assert torch.equal(module(x), other(x))
        assert not any(value.is_cuda for value in module.cpu().state_dict().values())

    def test_pickle_keeps_the_device(self):
        """A pickled CUDA tensor comes back as one."""
        x = pickle.loads(pickle.dumps(torch.ones(2, device="cuda")))

        assert (x.is_cuda, x.tolist()) == (True, [1, 1])


class TestThreads:
    """Threads and loaders."""

    def test_a_thread_computes_on_the_device(self):
        """Work in another thread runs on the modelled device too, on its own current stream."""
        found = {}

        def work() -> None:
            x = torch.ones(3, device="cuda")
            found["value"] = (x * 2 + 1).tolist()
            found["cuda"] = x.is_cuda
            found["stream"] = torch.cuda.current_stream() == torch.cuda.default_stream()

        with torch.cuda.stream(torch.cuda.Stream()):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        assert found == {"value": [3, 3, 3], "cuda": True, "stream": True}

    def test_a_loader_pins_its_batches(self):
        """`DataLoader(pin_memory=True)` gives pinned tensors."""
        data = torch.utils.data.TensorDataset(torch.arange(4.0))
        batches = [batch for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True)]

        assert all(batch.is_pinned() for batch in batches)
        assert [batch.cuda(non_blocking=True).tolist() for batch in batches] == [[0, 1], [2, 3]]

    def test_backward_runs_in_a_thread(self):
        """A backward pass started in another thread accumulates into the same parameters."""
        x = torch.ones(2, device="cuda", requires_grad=True)
        thread = threading.Thread(target=lambda: (x * 3).sum().backward())
        thread.start()
        thread.join()

        assert x.grad.tolist() == [3, 3]


class TestRefused:
    """What the model has not, it names."""

    def test_a_second_device_is_refused(self):
        """There is one GPU, and the message says so."""
        attempts = (
            lambda: torch.ones(1, device="cuda:1"), lambda: torch.ones(1).to("cuda:1"), lambda: torch.ones(1).cuda(1),
            lambda: torch.cuda.set_device(1), lambda: torch.cuda.set_device("cuda:1"), lambda: torch.cuda.device(1).__enter__(),
            lambda: torch.cuda.Stream(device=1), lambda: torch.cuda.current_stream(1), lambda: torch.cuda.synchronize(1),
            lambda: torch.cuda.get_device_properties(1), lambda: torch.cuda.get_device_name("cuda:1"), lambda: torch.cuda.mem_get_info(1),
            lambda: torch.cuda.memory_allocated(1), lambda: torch.cuda.reset_peak_memory_stats(1), lambda: torch.Generator("cuda:1"),
            lambda: torch.nn.Linear(2, 2, device="cuda:1"), lambda: torch.nn.Linear(2, 2).to(1), lambda: torch.zeros(2, device=1),
        )  # fmt: skip
        for attempt in attempts:
            with pytest.raises(Exception, match="one GPU, cuda:0"):
                attempt()

    def test_work_between_devices_is_refused(self):
        """DataParallel splits its input over GPUs."""
        net = torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda(), [0])
        with pytest.raises(NotImplementedError, match="lacks copies between GPUs .torch.nn.DataParallel"):
            net(torch.ones(2, 2, device="cuda"))

    def test_tensors_that_are_more_than_numbers_with_strides_are_refused(self):
        """Sparse, nested and quantized tensors, each by name."""
        x = torch.ones(2, 2, device="cuda")
        for name, attempt in (
            ("sparse", x.to_sparse), ("nested", lambda: torch.nested.nested_tensor([x[0], x[1]])),
            ("quantized", lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)),
        ):  # fmt: skip
            with pytest.raises(NotImplementedError, match=f"lacks {name} tensors on the device"):
                attempt()

    def test_an_export_is_refused(self):
        """`torch.export` traces with fake tensors of the device, for which C++ would end the process."""
        net, x = torch.nn.Linear(2, 2).cuda(), torch.ones(2, 2, device="cuda")
        with pytest.raises(NotImplementedError, match="lacks fake tensors of the device, and so torch.export"):
            torch.export.export(net, (x,))

    def test_compilation_is_refused(self):
        """`torch.compile` makes kernels, which need a GPU."""
        with pytest.raises(NotImplementedError, match=r"lacks torch\.compile"):
            torch.compile(lambda x: x)

    def test_an_unknown_function_of_the_c_layer_is_named(self):
        """Calling what the model does not have names `torch._C` and the function."""
        with pytest.raises(NotImplementedError, match=r"lacks torch\._C\._cuda_"):
            torch._C._cuda_attach_out_of_memory_observer(lambda *_: None)
        with pytest.raises(NotImplementedError, match=r"lacks torch\._C\._cuda_"):
            torch.cuda.memory._record_memory_history()

    def test_the_device_is_described_as_what_it_is(self):
        """Its name says that it is a model."""
        assert "model" in torch.cuda.get_device_name()
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties(0).total_memory == torch.cuda.mem_get_info()[1]

"""The specifications against the numbers of the literature and of the papers' scripts."""

import json

import numpy as np
import pytest
from examples import CATALOGUE

from shared import data
from steptime import networks
from steptime.networks.layers import LAYERS
from steptime.plan import digests
from steptime.prove import golden

# Of every network: digests of its specification and of the narrow one, layers, operations and bytes
# of a step on 7 samples, and the narrow one's loss in float64 after three steps on 8. Whoever
# changes a digest has the network timed again, so it must be meant.
FACTS = """
fcn5 6e1ce71a6e411fb3 61d90ac3b66444c9 4 4187488256 2618138624 3.4408183270773334
fcn8 15370ebe961c6f95 44909796cf7bd006 7 4715970560 2921136128 3.0513026531599765
alexnet 334930fc053152ec 88a7f97479697371 8 40971729792 1579490752 2.3037105847681185
resnet50 cc98267cd6aec7a2 f8363d8e47dfdb17 50 170093543424 2343686208 1.525869524531726
lstm32 0945ba0e800fd277 ce31c075a1de9823 3 4849926144 127324288 3.4220283162041523
lstm64 316e9eaa515effe5 cb219c1548c67916 3 9699852288 167753600 3.400888288277715
mnist 85c2d35ae8277f73 3c5bb79e0f5683e5 4 500957184 38352848 2.2420046605286075
cifar10 96c948aa81e7597c af0649f4494e5057 6 858740736 43754704 2.3032804433039087
convnext-tiny c0611e4d00914d23 a91ca8b1607a5313 59 186930003456 2634531904 1.034149657882704
llama-small fe4458047dce3a86 172136653deb5197 151 1493676785664 10818285824 3.307241308789403
mobilenet-v3 341c8241f6ada3df 30934d1928d02765 64 9020903808 801251872 2.026313034894877
fcn5-table2 c75777f638564de6 55cc22765ee1b889 4 1956640000 1230712384 3.4408183270773334
fcn8-table2 e7a5820efb8d7f69 034862abcb72105a 7 2082640000 1303204384 3.0513026531599765
alexnet-caffe 513950a0a8bb90fa 2e695c6beb7dfdd9 8 46204943232 1600217024 2.3037105847681185
lstm32-table2 3f7e6331f72a0842 86206f0ecb664111 3 13672644608 340404608 3.404370096181905
lstm64-table2 516833ea37db120c c7b824fa4aa51baa 3 27345289216 396458368 3.40036414084317
mnist-cntk ef3ca882f40a3a45 6221c29e1317bb7f 5 100628864 6902672 2.2243454492732986
cifar10-cntk 8326fe1769b873f0 de0cf02bee826563 7 2473185792 52468048 2.2725901287727064
rnn32 eea214f9f163102d bcd360e0b04bb22d 3 3792961536 108413056 3.438048254686612
gru32 f1a5b11ded6718dd 0d3e5237fcd7620e 3 4497604608 121020544 3.419146107843557
gpt-small 0daee9300bc7b1e3 086c676210f86633 25 120787107840 1137398272 3.367823982434719
gpt2 e1941ba0f2437f96 fe47876b27cebbaf 49 5719136403456 22641868800 3.3338944511320925
bert-base 769bb3e0e71c3d53 a03c55c7b8455f20 50 598481436672 4814650504 3.32451194165255
vit-tiny d2eb36dd4b8a10e3 3ebedfd00ddd0cce 50 52250075136 812177728 1.6677497529542895
mlp-mixer 3c97e05035c2bf9a c418f2f797c88f3b 34 157553270784 1508841024 2.131494947349914
fcn5-tanh 83b9f523db6d4fb6 16570a6905582008 4 4187488256 2618138624 3.0152055046082618
fcn5-momentum de3e77ed7b0f4161 fa173841918dfe83 4 4187488256 2618138624 3.412271543206119
gpt-small-rms 94e2fc1243c58520 b1d1115b3c867c63 25 120787107840 1137398272 3.3362098213117455
gpt-small-adamw fca1a8a358ea0a14 fc732a1808a5c11b 25 120787107840 1137398272 3.373315489541157
gpt-small-adam 246e68367a523a0b ff46fd1ac376f143 25 120787107840 1137398272 3.3733127708345623
lenet e07128320c254a1b 35ef72c716b6f7a8 5 15847440 2494032 2.4630901142618686
vgg16 1207db0bbbd8757a 259d0eb19ee9135c 16 648537243648 5269765440 2.2806617813000716
googlenet 90a6907e7d8d606b 5c46cd98bc0e5198 58 64820023296 1207807488 2.422119307236427
squeezenet 49c916656c7a57b4 c14f6e28c440ed05 26 32537817984 1008260904 2.267484858847223
mobilenet e325ceea6938db9c fdcc298acd2c1bf5 28 23735362560 814732736 2.466754687213447
densenet121 3cd49b47622475d4 ce5c508517679d53 121 117382594560 3078151488 3.2036682471902553
shufflenet 838d98e4202fc7a0 6a06daae692b15c1 50 5659549056 656659744 2.2420505103188977
xception 7684321b88f46e99 f7ed3a39cb5e5d0d 71 350742403536 5822971752 2.110831106327256
ffn-shallow da880d7d5fdfdd8c 62b9a25e0882d5c3 2 17897600 12909264 2.1404305532979375
ffn-deep 2feab980293acebe 172a786f4680aca5 4 64316000 38855264 2.400226636530247
fcn8-5-hidden 933db01d0a0565fb b8c3fe03c51fb929 6 4539809792 2820136960 3.198362653362447
alexnet-cntk 854cd2585dfaa35b a245fa78beab111c 8 26597811072 1544574272 2.302928675429741
alexnet-same 6517dbe96abfa8b9 408eb938bcdeeb40 8 51816554496 1935993152 2.301170029091102
alexnet-dropout 01c4fafa09a6ce02 103a51b722c01dbc 8 40971729792 1580408256 2.3037105847681185
resnet34 cd13ad2c950c48c3 df5c22614e7f61ef 34 152225783808 1113291840 2.1926469701830524
lstm32-50 bb590824fddd9c17 00f6f1546d46b098 3 10249207808 243372208 1.606953417570777
lstm64-50 d3614943c0a0b944 f17a39e48bea2966 3 20498415616 263765168 1.606953417570777
alexnet-2012 8cb377b3883c45b1 8bb5c3262ab72896 8 28949273472 1619728832 2.293990883250533
vgg16-adaptive 8b037dca0726b4ea c78c92d96dc1c7e8 16 648537243648 5272575296 2.4049518732822874
resnet50-group-norm 00d567eb516ab88c 24c327898a9d3921 50 170093543424 2343686208 2.0139039874101954
autoencoder d99ca46d3efb1a43 cf9867c1b6644382 8 108010000 65603400 0.7149895254663412
deconv 9086589ab534e740 3ca2429f3ea5df83 4 487825408 21781176 0.46596926073089007
autoencoder-conv 7dddb2e6cad704db bcab29e112a06ccb 7 29990016 4932024 0.6956690231200193
vae 7cf95d6219c35fd3 fef1623d391902bd 4 22960000 16054960 0.5086059560810972
gan d1bd8e0ad3c93811 5b16cb4a93073d38 6 124017600 66841696 0.6283571750161208
rbm d6d3f90830f4bfce e8a3b051e681e04e 1 27440000 12800856 1.4784051108651886
dbn a4c65e710437e9aa 76414cc37f668108 2 44940000 21000884 2.359972315436571
mnist-hidden-25 00a1307cc23660fe b367c7ec31c3f755 2 833700 547716 2.011858160737252
mnist-hidden-100 84083594307942d6 58e112acea508e56 2 3334800 1989216 2.011858160737252
mnist-hidden-784 d0930b1cbf630697 27b8ab5693a64746 2 26144832 15135696 2.011858160737252
mnist-hidden-1568 1eec10601f5c09a1 ade01c3d95e151f0 2 52289664 30204176 2.011858160737252
mnist-deep ba1a4ab7579e7022 399b12c791db3a45 4 4174800 2502016 2.079807957998314
mnist-start-0001 4d20b147b97a7907 67143f718b85cc2d 2 3334800 1989216 2.093770644418715
mnist-start-001 76bf72a4fd49ef93 377227345108480e 2 3334800 1989216 2.093320335972958
mnist-start-01 651d619f7a82901a f2ec58a4fd3be30f 2 3334800 1989216 2.0835910997951665
mnist-start-1 cf853ffcc4e0345f 373591700ec399cf 2 3334800 1989216 2.036201981708456
mnist-start-10 9a3dd3da4ecd4bb9 5de733363efe8c4e 2 3334800 1989216 14.549918248723309
mnist-ffn-shallow b1e12cc1698502bd 2569f8d4b4fd6873 2 17897600 12909264 2.2521277587814117
mnist-ffn-deep 485452b7784ec650 bf06c03e76241107 4 64316000 38855264 2.376931651513937
mnist-lenet ff9389ac95dd440b 44330684b97f8a22 5 15847440 2480592 2.5324735269415717
mnist-autoencoder 589c8c9d5adf57c5 00b963d8af83a257 8 108010000 65603400 0.7323237570706483
mnist-autoencoder-conv d61df76dc49f4b73 dfdde0720da9f368 7 29990016 4932024 0.695410504930068
mnist-vae 1561325ab9c1ba1c 1a7e513395c317d1 4 22960000 16054960 0.523475992456737
"""


def facts_of(name):
    """The line of `FACTS` of a network."""
    wide, narrow = (networks.specify(name, CATALOGUE, narrow) for narrow in (False, True))
    weights, state = data.initial_weights(narrow), {}
    for _ in range(4):
        taken = golden.train_step(narrow, weights, *data.synthetic_batch(narrow, 8), state)
        weights = taken.updated
    counts = networks.flops_per_step(wide, 7), networks.bytes_per_step(wide, 7)
    facts = [
        name,
        digests.digest(wide),
        digests.digest(narrow),
        networks.count_layers(wide),
        *counts,
    ]
    return " ".join(map(str, [*facts, float(taken.loss)]))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_network_stays_what_was_timed(name):
    facts = facts_of(name)
    known = [line for line in FACTS.splitlines() if line.split()[:1] == [name]]
    assert known, f"a new network: write its line into FACTS: {facts}"
    assert known[0].split()[:-1] == facts.split()[:-1]
    assert float(known[0].split()[-1]) == pytest.approx(float(facts.split()[-1]), rel=1e-13)


# What others print: nanoGPT's README ("number of parameters: 10.65M", without the positions), OpenAI's
# GPT-2 small as Hugging Face's `gpt2`, `BertForMaskedLM` of bert-base-uncased, timm's
# `vit_tiny_patch16_224` (DeiT-Ti of Touvron et al. 2021, table 1: 5 M) and `mixer_s16_224`.
# Of the networks for images: `num_params` of torchvision's `VGG16_Weights`, `SqueezeNet1_0_Weights`,
# `DenseNet121_Weights` and `ConvNeXt_Tiny_Weights` (torchvision/models/*.py); Caffe's
# `bvlc_googlenet` without its two classifiers at the sides; what Keras calls the trainable parameters
# of `MobileNet` and `Xception`; `shufflenet_g3_w1` of pytorchcv; Caffe's `bvlc_alexnet`, layer by layer.
PUBLISHED = {
    "vgg16": 138_357_544,
    "googlenet": 6_998_552,
    "squeezenet": 1_248_424,
    "mobilenet": 4_231_976,
    "densenet121": 7_978_856,
    "shufflenet": 1_865_728,
    "xception": 22_855_952,
    "alexnet-2012": sum((34_944, 307_456, 885_120, 663_936, 442_624))
    + sum((37_752_832, 16_781_312, 4_097_000)),
    # Hinton and Salakhutdinov 2006, and the Keras blog's "Building autoencoders in Keras".
    "autoencoder": sum((n + 1) * m for n, m in ((784, 1000), (1000, 500), (500, 250), (250, 30)))
    + sum((m + 1) * n for n, m in ((784, 1000), (1000, 500), (500, 250), (250, 30))),
    "autoencoder-conv": 4_385,
    # LeCun et al. 1998 connect the second convolution to some maps only; all of them give 61,706.
    "lenet": 156 + 2_416 + 48_120 + 10_164 + 850,
    "gpt-small": 10_646_784 + 256 * 384,
    "gpt2": 124_439_808,
    "bert-base": 109_514_298,
    "vit-tiny": 5_717_416,
    "mlp-mixer": 18_528_264,
    # The sum over the tensors of SmolLM2-135M; torchvision's `MobileNet_V3_Large_Weights`.
    "llama-small": 134_515_008,
    "mobilenet-v3": 5_483_032,
    "convnext-tiny": 28_589_128,
    # The example "vae" of pytorch/examples.
    "vae": 784 * 400 + 400 + 2 * (400 * 20 + 20) + 20 * 400 + 400 + 400 * 784 + 784,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_that_others_print(name):
    assert networks.count_parameters(networks.specify(name, CATALOGUE)) == PUBLISHED[name]


def test_a_shared_weight_is_one_parameter_with_both_gradients():
    """The table's gradient is the sum of what reaches it as what is looked up and as scores."""
    spec = networks.specify("gpt-small", CATALOGUE, narrow=True)
    weights, (tokens, labels) = data.initial_weights(spec), data.synthetic_batch(spec, 2)
    gradient = golden.train_step(spec, weights, tokens, labels).gradients["table1/weight"]
    looked_up = set(tokens.ravel().tolist())
    unseen = next(word for word in range(30) if word not in looked_up)
    assert np.abs(gradient[unseen]).max() > 0
    assert len([name for name in weights if name.startswith("table")]) == 1


def test_an_autoencoder_is_to_give_its_input_back_and_a_deconvolution_an_image():
    spec = networks.specify("autoencoder", CATALOGUE, narrow=True)
    inputs, targets = data.synthetic_batch(spec, 3)
    assert np.array_equal(targets, np.float32(0.5) * inputs + np.float32(0.5))
    codes, images = data.synthetic_batch(networks.specify("deconv", CATALOGUE), 3)
    assert codes.shape == (3, 100, 1, 1) and images.shape == (3, 784)


def test_every_loss_and_optimiser_is_in_a_network():
    """So that its steps are proven: those of a layer kind are, on its tiny network."""
    specs = [networks.specify(name, CATALOGUE) for name in CATALOGUE]
    assert set.union(*map(networks.used_records, specs)) >= networks.RECORDS - set(LAYERS)


def test_resnet50_costs_what_its_authors_say():
    """3.8e9 multiply-adds forward (He et al. 2015, table 1) with the stride in the 1x1; 4.1e9 with
    it in the 3x3.
    """
    flops = networks.flops_per_step(networks.specify("resnet50", CATALOGUE), 1)
    first = 2 * 64 * 3 * 49 * 112 * 112
    assert (flops + first) / 6 == pytest.approx(4.09e9, rel=0.01)


def test_a_dense_network_costs_six_operations_a_weight_but_for_its_first_layer():
    spec = networks.specify("fcn5", CATALOGUE)
    weights = 26752 * 2048 * 2 + 2048 * 2048 * 2
    assert networks.flops_per_step(spec, 64) == 64 * (6 * weights - 2 * 26752 * 2048)


def test_the_narrow_version_has_the_same_layers():
    for name in CATALOGUE:
        wide, narrow = (networks.specify(name, CATALOGUE, narrow) for narrow in (False, True))
        assert [(n["op"], n["inputs"]) for n in wide["nodes"]] == [
            (n["op"], n["inputs"]) for n in narrow["nodes"]
        ]
        assert networks.count_parameters(narrow) < 100_000


def specified(*layers, **entry):
    """The specification of a network with these layers on images of 4 channels, 8 by 8."""
    entry = {"input": IMAGES, "sizes": {"hidden": 2}, "narrow": {}, "layers": layers} | entry
    return networks.specify("n", {"n": entry})


def wired(spec):
    return [(node["name"], *node["inputs"]) for node in spec["nodes"][:-1]]


IMAGES = {"kind": "image", "shape": [4, 8, 8]}
ROW, STEPS = {"kind": "dense", "shape": [6]}, {"kind": "dense", "shape": [5, 6]}
WORDS = {"kind": "tokens", "shape": [5], "vocabulary": 12}


def test_a_residual_adds_its_input_or_what_a_shortcut_makes_of_it():
    same = {"conv": {"channels": 4, "kernel": 1}}
    wide = {"conv": {"channels": 6, "kernel": 1}}
    spec = specified(
        {"residual": {"layers": [same, "batch_norm"]}},
        {"residual": {"layers": [wide, "relu"], "shortcut": [wide, "batch_norm"]}},
        "relu",
        "flatten",
    )
    assert wired(spec) == [
        ("conv1", "input"),
        ("batch_norm1", "conv1"),
        ("add1", "batch_norm1", "input"),
        ("conv2", "add1"),
        ("relu1", "conv2"),
        ("conv3", "add1"),
        ("batch_norm2", "conv3"),
        ("add2", "relu1", "batch_norm2"),
        ("relu2", "add2"),
    ]
    assert networks.count_layers(spec) == 2
    nodes = {node["name"]: node for node in spec["nodes"]}
    assert "ends_branch" in nodes["batch_norm1"] and "ends_branch" not in nodes["batch_norm2"]


def test_a_name_stands_for_the_last_layer_that_had_it():
    """So that a repeated block may name its layers; a round may have sizes of its own."""
    block = [
        {"conv": {"channels": "width", "kernel": 1, "name": "left"}},
        {"conv": {"channels": "width", "kernel": 1, "inputs": ["left"]}},
        {"add": {"inputs": ["left", "right"], "name": "out"}},
    ]
    block[1]["conv"]["name"] = "right"
    spec = specified({"repeat": [{"width": "hidden"}, {"width": 3}], "layers": block}, "flatten")
    assert wired(spec)[2::3] == [("add1", "conv1", "conv2"), ("add2", "conv3", "conv4")]
    assert wired(spec)[3] == ("conv3", "add1")
    assert [node["shape"][0] for node in spec["nodes"][:-1]] == [2, 2, 2, 3, 3, 3]


ADD = {"add": {"inputs": ["left", "input"]}}
SMALL = {"avg_pool": {"kernel": 2, "stride": 2, "name": "small"}}
GROUPS = {"grouped_conv": {"channels": 4, "kernel": 1, "groups": 3}}
SGD = {"name": "sgd", "learning_rate": 0.1}


# (layers on an image, entry, words)
MISTAKES = [
    (["ReLU"], {}, "there is no layer 'ReLU'; write 'relu'"),
    ([{"linear": {"units": 3}}], {}, "there is no layer 'linear'; write dense"),
    ([{"dense": {"units": "hiden"}}], {}, "size 'hiden' is not defined; write hidden or a n"),
    ([{"conv": {"channels": 3}}], {}, "layer 'conv1' lacks 'kernel'; write kernel:"),
    ([{"conv": {"channels": 3, "kernel": 9}}], {}, "'conv1' does not fit .*window of 9 on 8"),
    ([{"relu": {"name": "lef"}}, ADD], {}, "the input 'left', but no .*; write 'lef'"),
    (["relu", {"relu": {"inputs": ["input"]}}], {}, "takes the output of layer 'relu1'; give"),
    (["add"], {}, "layer 'add1' takes 2 inputs and has 1; write add: {inputs"),
    (["concat"], {}, "layer 'concat1' takes two inputs or more and has 1; write concat: {inp"),
    ([SMALL, {"concat": {"inputs": ["input", "small"]}}], {}, "has shape .*same height"),
    ([GROUPS], {}, "4 channels, those before it, .* 3 groups: write a number of groups that"),
    (
        [{"residual": {"layers": [{"conv": {"channels": 3, "kernel": 1}}]}}],
        {},
        r"'add1' does not fit .*\[3, 8, 8\] .*'input', has shape \[4, 8, 8\]: write .*shortcut",
    ),
    ([{"residual": {"layers": ["relu"], "skip": []}}], {}, "a residual has no 'skip'; write"),
    (["relu"], {"loss": "entropy"}, "no loss 'entropy'; write .*softmax_cross_entropy"),
    (["relu"], {"optimiser": SGD | {"name": "adagrad"}}, "no optimiser 'adagrad'; write"),
    (["relu"], {"optimiser": SGD | {"name": "rmsprop"}}, "rmsprop needs 'rho'; write"),
]
DENSE, LSTM = {"dense": {"units": 3}}, {"lstm": {"units": 4}}
CONV = {"conv": {"channels": 2, "kernel": 3}}
EMBEDDING = {"embedding": {"vocabulary": 12, "units": 6}}
EVEN = {"conv": {"channels": 2, "kernel": 4, "padding": "same"}}
NORM, SMALLER = {"layer_norm": {"epsilon": 1e-5}}, {"embedding": {"vocabulary": 8, "units": 4}}


@pytest.mark.parametrize(
    "source, layers, entry, told",
    [
        *((IMAGES, *each) for each in MISTAKES),
        (ROW, [DENSE, "batch_norm"], {}, "takes an image .*'dense1' gives a row.*layer_norm"),
        (ROW, [DENSE, {"group_norm": {"groups": 3}}], {}, "takes an image .*'dense1' gives a row"),
        (IMAGES, [CONV, DENSE], {}, "'dense1' takes .*'conv1' gives an image"),
        (WORDS, [EMBEDDING, LSTM, "flatten", DENSE], {}, "'flatten1' takes .*unstack, mean_steps"),
        (IMAGES, [CONV], {}, r".* last layer, 'conv1', which gives an image .*\[2, 6, 6\]; write"),
        (WORDS, [SMALLER, DENSE], {}, "rows for 8 words, and 'i.* 12"),
        (ROW, [EMBEDDING, "unstack"], {}, "'embedding1' takes word ids, .* a row .*kind: tokens"),
        (WORDS, [DENSE], {}, "takes .*'input' gives word ids.*write an embedding before it"),
        (IMAGES, [LSTM], {}, "'lstm1' takes a sequence.*gives an image.*write patches before it"),
        (ROW, [{"dense": {"units": 1}}], {}, "the loss .*, 'dense1', .*write two classes or more"),
        (STEPS, [DENSE], {"loss": "mean_squares"}, "the loss mean_squares .* a sequence"),
        (ROW, [DENSE], {"loss": "evidence_bound"}, "the loss evidence_bound does not fit"),
        (ROW, [{"dense": {"units": 2}}, NORM], {}, "so few features are 0, 1 or -1"),
        (IMAGES, [{"max_pool": {"kernel": 2, "stride": 2, "padding": 2}}], {}, "padding alone"),
        (WORDS, [EMBEDDING, {"dense": {"units": 8}}, {"attention": {"heads": 3}}], {}, "heads"),
        (WORDS, [EMBEDDING, {"lookup": {"inputs": ["input"] * 2}}], {}, "'lookup1' takes a table"),
        (ROW | {"shape": [1, 2, 3]}, [DENSE], {}, "of kind dense .*write .features. or .steps"),
        (WORDS | {"shape": [5, 6]}, [EMBEDDING], {}, "its input of kind tokens has the shape"),
        ({"kind": "tokens", "shape": [5]}, [EMBEDDING], {}, "has no 'vocabulary'; write how many"),
        (IMAGES | {"vocabulary": 3}, [CONV], {}, "has a 'vocabulary'; leave it out"),
        (WORDS | {"vocabulary": 1}, [EMBEDDING], {}, "all samples of one word are alike"),
        (IMAGES, [EVEN], {}, "stride of 1 and an"),
        (ROW, [{"dense": {"units": 3, "activation": "relu"}}], {}, "as a layer behind it"),
        (IMAGES, [{"local_response_norm": {"size": 4}}], {}, "an odd whole number"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_mistake_is_told_with_the_layer_and_what_to_write(source, layers, entry, told):
    """After c1-layer-does-not-fit."""
    with pytest.raises(ValueError, match=f"^network n: .*{told}"):
        specified(*layers, input=source, **entry)


def test_a_narrow_version_that_does_not_fit_is_called_so():
    entry = {
        "input": ROW,
        "sizes": {"n": 3},
        "narrow": {"n": 1},
        "layers": [{"dense": {"units": "n"}}],
    }
    with pytest.raises(ValueError, match="^network n, narrow: the loss"):
        networks.specify("n", {"n": entry}, narrow=True)


def test_numbers_that_yaml_reads_as_whole_are_rates_all_the_same():
    layers = [DENSE, {"dropout": {"rate": 0}}]
    spec = specified(
        *layers, input=ROW, optimiser=SGD | {"learning_rate": 1, "after_epochs": [[3, 2]]}
    )
    whole = '{"name": "sgd", "learning_rate": 1.0, "after_epochs": [[3, 2.0]]}'
    assert json.dumps(spec["optimiser"]) == whole
    assert str(spec["nodes"][1]["rate"]) == "0.0"
    rate = specified(*layers, input=ROW, learning_rate=1)["optimiser"]["learning_rate"]
    assert str(rate) == "1.0"


def test_same_is_a_padding_where_it_is_even():
    spec = specified({"conv": {"channels": 2, "kernel": 5, "padding": "same"}}, "flatten")
    assert spec["nodes"][0]["padding"] == 2 and spec["nodes"][0]["shape"] == [2, 8, 8]


def test_batch_normalisation_of_one_value_is_known():
    layers = [{"conv": {"channels": 6, "kernel": 8, "bias": False}}, "batch_norm", "flatten"]
    said = networks.single_values(specified(*layers), 1)
    assert "'batch_norm1' takes statistics of the mini-batch" in said
    assert not networks.single_values(specified(*layers), 2)


def test_a_framework_may_have_second_biases_in_its_gru_alone():
    """As Keras has."""
    layers = [{"gru": {"units": 2}}, {"lstm": {"units": 3}}, {"lstm": {"units": 3}}]
    assert networks.spare_parameters(specified(*layers, input=STEPS)) == {0, 6, 24, 30}

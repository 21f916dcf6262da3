# gilscope with everything that it needs but the kernel: BCC, and headers to compile probes against.
# With --build-arg COMPILER= there is neither: then the probes are those that `make programs` has
# compiled in this checkout.
#
# docs/container.md says how it is run. The tag names a point release of Debian; to pin the image
# itself, give its digest: --build-arg BASE=debian@sha256:...
ARG BASE=debian:12.15-slim
ARG COMPILER=python3-bpfcc

FROM ${BASE} AS builder
ARG COMPILER
WORKDIR /build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev python3-dev python3-venv
COPY deploy/setup/headers.sh ./
RUN [ -z "${COMPILER}" ] || ./headers.sh /build/headers
COPY deploy/image/ ./
# Only the environment that is copied needs a Python; pip and what builds the wheel stay behind.
RUN python3 -m venv tools \
    && tools/bin/pip install --no-cache-dir --require-hashes -r build-requirements.txt \
    && python3 -m venv --system-site-packages --without-pip /opt/gilscope \
    && tools/bin/pip --python /opt/gilscope/bin/python install --no-cache-dir --no-deps \
        --require-hashes -r requirements.txt
COPY . source/
RUN tools/bin/pip wheel --no-cache-dir --no-build-isolation --no-deps -w wheels ./source \
    && tools/bin/pip --python /opt/gilscope/bin/python install --no-cache-dir --no-deps --no-index \
        wheels/*.whl \
    && tools/bin/pip --python /opt/gilscope/bin/python check \
    && if [ -n "${COMPILER}" ]; then \
        mv headers /opt/gilscope/lib/python3.11/site-packages/gilscope/; \
    else \
        ls /opt/gilscope/lib/python3.11/site-packages/gilscope/bpf/ahead/gil-*.json; \
    fi

FROM ${BASE}
ARG COMPILER
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 ${COMPILER:+"${COMPILER}"} \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*
COPY --from=builder /opt/gilscope /opt/gilscope
# Compiled probes and found call sites are kept here: mount a volume or a tmpfs.
ENV PATH=/opt/gilscope/bin:/usr/local/bin:/usr/bin:/bin \
    XDG_CACHE_HOME=/tmp
EXPOSE 9845
ENTRYPOINT ["gilscope"]
CMD ["serve", "--all", "--listen", "0.0.0.0:9845"]

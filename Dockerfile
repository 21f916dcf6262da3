# gilscope with everything that it needs but the kernel: BCC, and headers to compile probes against.
#
# docs/container.md says how it is run. The tag names a point release of Debian; to pin the image
# itself, give its digest: --build-arg BASE=debian@sha256:...
ARG BASE=debian:12.15-slim

FROM ${BASE} AS builder
WORKDIR /build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev python3-dev python3-venv
COPY deploy/setup/headers.sh ./
RUN ./headers.sh /build/headers
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
    && mv headers /opt/gilscope/lib/python3.11/site-packages/gilscope/

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-bpfcc \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*
COPY --from=builder /opt/gilscope /opt/gilscope
# Compiled probes and found call sites are kept here: mount a volume or a tmpfs.
ENV PATH=/opt/gilscope/bin:/usr/local/bin:/usr/bin:/bin \
    XDG_CACHE_HOME=/tmp
EXPOSE 9845
ENTRYPOINT ["gilscope"]
CMD ["serve", "--all", "--listen", "0.0.0.0:9845"]

# gilscope with everything that it needs but the kernel. The probes are those that `make programs`
# has compiled in this checkout; of the distribution there is what Python loads, and sh.
# With --target with-bcc it is Debian with BCC, and headers to compile probes against, for kernels
# that do not take the compiled ones.
#
# docs/container.md says how it is run. The tag names a point release of Debian; to pin the image
# itself, give its digest: --build-arg BASE=debian@sha256:...
ARG BASE=debian:12.15-slim

FROM ${BASE} AS builder
WORKDIR /build
# The lists stay, for the stages that download further packages.
# hadolint ignore=DL3008,DL3009
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev python3-dev python3-venv
COPY deploy/image/*.txt ./
# Only the environment that is copied needs a Python; pip and what builds the wheel stay behind.
RUN python3 -m venv tools \
    && tools/bin/pip install --no-cache-dir --require-hashes -r build-requirements.txt \
    && python3 -m venv --system-site-packages --without-pip /opt/gilscope \
    && tools/bin/pip --python /opt/gilscope/bin/python install --no-cache-dir --no-deps \
        --require-hashes -r requirements.txt
COPY . source/
RUN if ! ls source/agent/gilscope/bpf/ahead/gil-*.json; then \
        echo 'image: error: this checkout has no compiled probes: make programs' >&2; exit 1; \
    fi \
    && tools/bin/pip wheel --no-cache-dir --no-build-isolation --no-deps -w wheels ./source \
    && tools/bin/pip --python /opt/gilscope/bin/python install --no-cache-dir --no-deps --no-index \
        wheels/*.whl \
    && tools/bin/pip --python /opt/gilscope/bin/python check

FROM builder AS headers
RUN source/deploy/setup/headers.sh /build/headers

FROM ${BASE} AS with-bcc
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-bpfcc \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*
COPY --from=builder /opt/gilscope /opt/gilscope
COPY --from=headers /build/headers /opt/gilscope/lib/python3.11/site-packages/gilscope/headers
# Found call sites and probes that BCC compiles are kept here: mount a volume or a tmpfs.
ENV PATH=/opt/gilscope/bin:/usr/local/bin:/usr/bin:/bin \
    XDG_CACHE_HOME=/tmp
EXPOSE 9845
ENTRYPOINT ["gilscope"]
CMD ["serve", "--all", "--listen", "0.0.0.0:9845"]

FROM builder AS tree
RUN source/deploy/image/tree.sh /build/tree

FROM scratch
COPY --from=tree /build/tree /
COPY --from=builder /opt/gilscope /opt/gilscope
# Found call sites are kept here: mount a volume or a tmpfs.
ENV PATH=/opt/gilscope/bin:/usr/bin \
    XDG_CACHE_HOME=/tmp
EXPOSE 9845
ENTRYPOINT ["gilscope"]
CMD ["serve", "--all", "--listen", "0.0.0.0:9845"]

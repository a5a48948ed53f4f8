"""Network addresses from which a document may be fetched: public ones, but no metadata service of a cloud."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

# RFC 6052: an IPv4 address in the last 32 bits, which a gateway connects to. RFC 4291 has the deprecated form in ::/96.
_EMBEDDING = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
# RFC 5214, ISATAP: an IPv4 address in the last 32 bits of an interface identifier that begins with one of these.
_ISATAP = (0x00005EFE, 0x02005EFE)
# Global to some versions of Python: relays of 6to4 (RFC 7526), documentation (RFC 9637), segments (RFC 9602).
_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("192.88.99.0/24", "192.0.0.0/24", "64:ff9b:1::/48", "3fff::/20", "5f00::/16"))
)
# Addresses of credential services of clouds: AWS, Azure, Google and most others; ECS; Alibaba; Oracle; Azure's host,
# which has a public address; AWS over IPv6.
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "168.63.129.16",
            "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
        ),
    )
)  # fmt: skip


def is_public(address: str) -> bool:
    """Whether an address, as a resolver returns it, is public.

    Not public are private, loopback, link-local, shared, multicast, reserved, documentation and unspecified addresses.
    IPv4 addresses embedded in IPv6 (mapped, compatible, 6to4, Teredo, ISATAP, NAT64) must be public too.
    """
    return all(map(_is_public, _embedded(_parsed(address))))


def is_metadata(address: str) -> bool:
    """Whether an address is, or embeds, that of a cloud's metadata service. It is always refused."""
    return not _METADATA.isdisjoint(_embedded(_parsed(address)))


def _parsed(address: str) -> IPv4Address | IPv6Address:
    return ipaddress.ip_address(address.partition("%")[0])


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    site_local = isinstance(address, IPv6Address) and address.is_site_local
    return address.is_global and not (
        site_local
        or address in _METADATA
        or any(address in network for network in _NOT_PUBLIC)
        or address.is_multicast
        or address.is_reserved
    )


def _embedded(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Return the addresses embedded in this one, else the address itself."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if any(address in network for network in _EMBEDDING) and int(address) > 1:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    if address.sixtofour is not None:
        return [address, address.sixtofour]
    if address.teredo is not None:
        return [address, *address.teredo]
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return [address, IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address]

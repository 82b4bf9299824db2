//! Empty: this manifest only pins a package that carries a browser asset.

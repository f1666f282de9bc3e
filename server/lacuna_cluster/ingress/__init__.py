"""An ingress: the web application, the requests that it sends to engine replicas, and how it chooses among them."""
